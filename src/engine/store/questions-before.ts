import type { Store } from './open-store.ts';

/** Number of Unicode code points at the start of a text that are searched for a question mark and returned. */
const MAX_CHARACTERS = 1_000;

/**
 * Greatest number of memories just before a memory in its session that are looked through, the nearest first, for one
 * that is no part of a document. Only parts that earlier versions of Cairn stored have to be passed over.
 */
const PASSED_OVER = 200;

/**
 * Code points of the question marks: Latin, full-width, Arabic. They are passed as numbers, since a `?` in the text of
 * a statement would count as a parameter.
 */
const MARKS = [0x3f, 0xff1f, 0x61f];

/**
 * Reads the text just before each memory in its session, if it has a question mark in its first 1,000 characters.
 * Memories outside of sessions and chunks of documents have none, nor has a memory that follows 200 old chunks of
 * documents.
 * @returns the first 1,000 characters of that text, by the number of the memory after it
 */
export function readQuestionsBefore(store: Store, memoryNos: readonly number[]): Map<number, string> {
  if (memoryNos.length === 0) return new Map();
  const rows = store
    .prepare(
      `WITH before AS MATERIALIZED (
         SELECT m.seq AS memoryNo,
           (SELECT near.seq FROM (
                SELECT p.seq, p.event_time FROM memories p INDEXED BY memories_by_turn
                WHERE p.user_no = m.user_no AND p.session_id = m.session_id AND p.session_id <> '' AND p.is_part = 0
                  AND (p.event_time, p.seq) < (m.event_time, m.seq)
                ORDER BY p.event_time DESC, p.seq DESC LIMIT ${PASSED_OVER}) AS near
              CROSS JOIN memory_dynamics pd ON pd.seq = near.seq
            WHERE pd.generation_no IS NULL ORDER BY near.event_time DESC, near.seq DESC LIMIT 1) AS questionNo
         FROM json_each(?) AS wanted CROSS JOIN memories m ON m.seq = wanted.value
           CROSS JOIN memory_dynamics d ON d.seq = m.seq
         WHERE m.session_id <> '' AND d.generation_no IS NULL
       )
       SELECT memoryNo, substr(q.content, 1, ${MAX_CHARACTERS}) AS question
       FROM before CROSS JOIN memories q ON q.seq = before.questionNo
       WHERE ${MARKS.map((mark) => `instr(substr(q.content, 1, ${MAX_CHARACTERS}), char(${mark})) > 0`).join(' OR ')}`,
    )
    .all(JSON.stringify(memoryNos)) as { memoryNo: number; question: string }[];
  return new Map(rows.map(({ memoryNo, question }) => [memoryNo, question]));
}
