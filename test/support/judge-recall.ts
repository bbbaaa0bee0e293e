import type { Tenant } from '../../src/engine/engine.ts';
import type { FeedbackVerdict, Profile } from '../../src/engine/types.ts';

/**
 * Asks for the harbour ferry, and gives feedback on the first two matches.
 * @returns the id of the recall
 */
export async function askAndJudge(
  tenant: Tenant,
  verdicts: readonly [FeedbackVerdict, FeedbackVerdict],
  profile: Profile = 'composite',
): Promise<string> {
  const filter = { userIds: ['ana'] };
  const { recallId, hits } = await tenant.query({ query: 'harbour ferry', k: 5, filter, profile, minScore: 0 });
  for (const [place, verdict] of verdicts.entries())
    await tenant.giveFeedback(recallId, verdict, [hits[place]!.memory.id]);
  return recallId;
}
