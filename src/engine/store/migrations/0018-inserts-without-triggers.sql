-- Code writes the labels of a new memory and the event that it was stored (store/labels.ts, store/events.ts). A trigger
-- on an insert makes SQLite save every page that the statement changes, so that it can be undone by itself: it took a
-- fifth of the time of an add.
DROP TRIGGER memories_bring_labels;
DROP TRIGGER events_of_stored_memories;
