-- Who registered a server, so that an undo of a leaked key forgets it.
ALTER TABLE federation_servers ADD COLUMN written_by TEXT; -- public id of the key; NULL if it is not known
