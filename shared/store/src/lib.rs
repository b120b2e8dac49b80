//! Migrations, and the tables that more than one service touches
