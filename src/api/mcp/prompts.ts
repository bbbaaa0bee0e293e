import type { GetPromptResult, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { TenantCall } from '../route.ts';
import { parse } from '../schemas/parse.ts';
import { text } from '../schemas/values.ts';
import { LIMITS } from '../schemas/value-limits.ts';
import { describeProfile } from './profile.ts';
import { protocolError } from './failures.ts';
import type { Run } from './resources.ts';
import { toolSchema } from './tool.ts';
import { recall } from './tools/recall.ts';
import { recentMemories } from './tools/memories.ts';
import { quoteMemories } from '../../engine/index.ts';

/** Number of latest memories in the prompt `context`. */
const LATEST = 10;

const topicSchema = z.strictObject({
  topic: text(LIMITS.queryCharacters).min(1, 'must not be empty').describe('What to recall.'),
});
const topicShown = toolSchema(topicSchema);

/**
 * Registers the prompts `recall` and `context`, for a caller who may read. Texts of memories are put into a message of
 * the user, never into one of the system, since they may contain instructions.
 */
export function registerPrompts(server: McpServer, call: TenantCall, run: Run, signal: () => AbortSignal): void {
  const about = { title: 'Recall', description: 'What memory holds about a topic.', argsSchema: topicShown };
  server.registerPrompt('recall', about, (given) =>
    message(call, () =>
      run('prompt.recall', async () => {
        const { topic } = parse(topicSchema, given);
        const recalled = await recall.run(call, { query: topic }, { signal: signal(), tell: async () => {} });
        return `Use what is recalled here about: ${topic}\n\n${recalled}`;
      }),
    ),
  );
  const context = { title: 'Context', description: 'What is lasting about the user, and the latest memories.' };
  server.registerPrompt('context', context, () =>
    message(call, () =>
      run('prompt.context', async () => {
        const { memories } = await recentMemories(call, { limit: LATEST }, signal());
        const latest = quoteMemories(memories).text || 'None.';
        return `Lasting memories:\n\n${await describeProfile(call)}\n\nLatest memories:\n\n${latest}`;
      }),
    ),
  );
}

async function message(call: TenantCall, write: () => Promise<string>): Promise<GetPromptResult> {
  try {
    return { messages: [{ role: 'user', content: { type: 'text', text: await write() } }] };
  } catch (error) {
    throw protocolError(error, call);
  }
}
