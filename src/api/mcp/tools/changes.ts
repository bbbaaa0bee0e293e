import { z } from 'zod';
import { LIMITS } from '../../schemas/value-limits.ts';
import { givenId, text } from '../../schemas/values.ts';
import { isoTime, READS, tool } from '../tool.ts';

/** Greatest number of tokens of the text that the tool returns. */
const DIGEST_TOKENS = 6_000;
/** Greatest number of entries in each list of changes (new, changed, faded … memories). */
const MOST = 50;
/** Salience (0 to 1) under which a memory counts as faded, as in `GET /diff`. */
const FADED_BELOW = 0.1;

export const whatChanged = tool({
  name: 'what_changed',
  title: 'What changed',
  description: 'List what was added, corrected, superseded, contradicted or archived since a time.',
  needs: 'read',
  limited: 'queries',
  annotations: READS,
  input: z.strictObject({
    since: isoTime.describe('ISO 8601 time of the earlier state.'),
    until: isoTime.optional().describe('Time of the later state; now by default.'),
    topic: text(LIMITS.queryCharacters).min(1, 'must not be empty').optional().describe('Only what is about this.'),
    session_id: givenId.optional(),
  }),
  async run({ api, tenant }, { since, until, topic, session_id: session }, { signal }) {
    const diff = await tenant.diff(
      {
        from: since,
        to: until ?? api.engine.clock.now(),
        axis: 'recorded',
        filter: session === undefined ? {} : { sessionIds: [session] },
        topic,
        fadedBelow: FADED_BELOW,
        limit: MOST,
        digest: { tokenBudget: DIGEST_TOKENS },
      },
      signal,
    );
    const degraded = diff.degraded ? ['', 'Degraded: not all memories were looked at; ask for a shorter time.'] : [];
    return [diff.rendered?.text ?? '', ...degraded].join('\n');
  },
});
