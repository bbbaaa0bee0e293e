import type { PrivacyGuard } from '../privacy/guard.ts';
import type { RecallToKeep } from '../store/recalls.ts';
import type { Json, MemoryFilter, RecallHead } from '../types.ts';

/** Fields of a filter that name somebody by a key of the caller's; they are never looked at, as in a memory. */
type Named = 'userIds' | 'sessionIds' | 'withinTags';

/** Screens what a recall keeps of its question. It never throws: what cannot be screened is withheld. */
export async function screenRecall(guard: PrivacyGuard, recall: RecallToKeep): Promise<RecallToKeep> {
  if (!guard.isOn()) return recall;
  return { ...recall, head: JSON.stringify(await screenHead(guard, JSON.parse(recall.head) as RecallHead)) };
}

/**
 * Returns the head of a recall with the question as the policy of today lets it be kept or shown: with markers where
 * that redacts, and without question and conditions where it refuses, or while the analyzer is down.
 */
export async function screenHead<Head extends RecallHead>(guard: PrivacyGuard, head: Head): Promise<Head> {
  if (!guard.isOn()) return head;
  const { userIds, sessionIds, withinTags, ...conditions } = head.filter;
  const named: Pick<MemoryFilter, Named> = { userIds, sessionIds, withinTags };
  try {
    const asked = { question: head.question, conditions } as unknown as Json;
    const { fields, report } = await guard.fields({ value: asked });
    const { question, conditions: screened } = fields.value as unknown as Pick<Head, 'question'> & {
      readonly conditions: MemoryFilter;
    };
    const isChanged = Object.keys(report.redacted).length > 0 && head.questionKept === 'whole';
    return {
      ...head,
      question,
      filter: { ...screened, ...named },
      questionKept: isChanged ? 'redacted' : head.questionKept,
    };
  } catch {
    return { ...head, question: null, filter: named, questionKept: 'withheld' };
  }
}
