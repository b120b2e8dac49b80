-- Cards that were closed lately are read each second by whoever follows cards.
CREATE INDEX interactions_closed ON interactions (closed_at) WHERE closed_at IS NOT NULL;
