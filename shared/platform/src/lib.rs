//! How a process lives: config, telemetry, pool, server, client, errors, shutdown
