-- A server is an MCP endpoint, or a program that Gatehouse runs. Of a program this holds the command, what it may use and its limits,
-- as JSON; the names and sealed values of its environment are in the columns for headers, which it has none of.
ALTER TABLE servers ADD COLUMN stdio text;
ALTER TABLE servers ADD CONSTRAINT servers_one_transport CHECK ((url = '') = (stdio IS NOT NULL));
