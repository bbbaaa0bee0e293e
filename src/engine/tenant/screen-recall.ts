import type { PrivacyGuard } from '../privacy/guard.ts';
import type { RecallToKeep } from '../store/recalls.ts';
import type { Json, MemoryFilter, RecallHead } from '../types.ts';

/**
 * Fields of a filter that are not screened for personal data: user and session ids, which are not screened in a memory
 * either, and the tags to which the caller's key is bound.
 */
type Named = 'userIds' | 'sessionIds' | 'withinTags';

/**
 * Screens the query and filter that the recall log keeps for secrets and personal data; see `screenHead`. It never
 * throws. While the privacy policy is off, the recall is returned unchanged.
 */
export async function screenRecall(guard: PrivacyGuard, recall: RecallToKeep): Promise<RecallToKeep> {
  if (!guard.isOn()) return recall;
  return { ...recall, head: JSON.stringify(await screenHead(guard, JSON.parse(recall.head) as RecallHead)) };
}

/**
 * Returns the head of a logged recall (answered query) with its query and filter as the present privacy policy allows:
 * with markers in place of redacted data. If the policy refuses the query or a condition of the filter, or the analyzer
 * cannot be reached, the query is null, and of the filter only user ids, session ids and bound tags are kept.
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
