import type { Store } from './open-store.ts';

/** Number of Unicode code points at the start of a text that are searched for a question mark and returned. */
const MAX_CHARACTERS = 1_000;

/**
 * Code points of the question marks: Latin, full-width, Arabic. They are passed as numbers, since a `?` in the text of
 * a statement would count as a parameter.
 */
const MARKS = [0x3f, 0xff1f, 0x61f];

/**
 * Reads for each memory the text just before it in its session, if that has a question mark in its first 1,000
 * characters (code points). Memories outside of sessions and chunks of documents have no such text.
 * @returns the first 1,000 characters of the text before, by the number of the memory that follows it
 */
export function readQuestionsBefore(store: Store, memoryNos: readonly number[]): Map<number, string> {
  if (memoryNos.length === 0) return new Map();
  const rows = store
    .prepare(
      `SELECT memoryNo, substr(q.content, 1, ${MAX_CHARACTERS}) AS question FROM (
         SELECT m.seq AS memoryNo,
           (SELECT p.seq FROM memories p INDEXED BY memories_by_session
              CROSS JOIN memory_dynamics pd ON pd.seq = p.seq
            WHERE p.user_no = m.user_no AND p.session_id = m.session_id
              AND (p.event_time, p.seq) < (m.event_time, m.seq) AND pd.generation_no IS NULL
            ORDER BY p.event_time DESC, p.seq DESC LIMIT 1) AS questionNo
         FROM json_each(?) AS wanted CROSS JOIN memories m ON m.seq = wanted.value
           CROSS JOIN memory_dynamics d ON d.seq = m.seq
         WHERE m.session_id <> '' AND d.generation_no IS NULL
       ) CROSS JOIN memories q ON q.seq = questionNo
       WHERE ${MARKS.map((mark) => `instr(substr(q.content, 1, ${MAX_CHARACTERS}), char(${mark})) > 0`).join(' OR ')}`,
    )
    .all(JSON.stringify(memoryNos)) as { memoryNo: number; question: string }[];
  return new Map(rows.map(({ memoryNo, question }) => [memoryNo, question]));
}
