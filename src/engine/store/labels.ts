/** Labels of memories: their tags and the files that they mention, which the triggers of the schema keep. */

/** Values of `labels.kind`. */
export const LABEL_KINDS = { tag: 0, file: 1 } as const;

/** SQL that finds the numbers of memories with one of some files; its `?` takes their paths as a JSON list. */
export const MEMORIES_OF_FILES = `SELECT x.memory FROM labels l CROSS JOIN memory_labels x ON x.label_no = l.label_no
  WHERE l.kind = ${LABEL_KINDS.file} AND l.label IN (SELECT value FROM json_each(?))`;
