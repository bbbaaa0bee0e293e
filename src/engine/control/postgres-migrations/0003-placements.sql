-- In which database each tenant is, if it was ever placed outside the one of OM_DATABASE_URL (control/placements.ts).
-- Databases are named as OM_DATABASES names them; 'home' is the one of OM_DATABASE_URL. Addresses are never stored.

CREATE TABLE placements (
  tenant_id    text COLLATE "C" PRIMARY KEY REFERENCES tenants (id) ON DELETE CASCADE,
  -- NULL for the database of OM_DATABASE_URL.
  database     text COLLATE "C",
  -- Grows with each move, so that a tenant's path is another one after it.
  number       bigint NOT NULL,
  -- A move that is under way or was broken off: its token and its target; NULL if there is none. A move that was given
  -- up has a token that begins with 'abandoned:', until the mark of the source is cleared.
  moving       text COLLATE "C",
  moving_to    text COLLATE "C",
  -- A database in which a move left rows that are to be deleted, and the token of that move; NULL if there are none.
  remains_in   text COLLATE "C",
  remains_of   text COLLATE "C"
);
