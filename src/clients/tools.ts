import * as z from 'zod';
import type { Client } from '../client/index.ts';
import { checkUser } from './check-user.ts';

export interface CairnToolsOptions {
  /** The client of the server, as `createClient` of `cairn-memory/client` makes it. */
  readonly client: Pick<Client, 'queryMemories' | 'addMemory'>;
  /** The user whose memories the tools read and store. The model cannot choose another one. */
  readonly userId: string;
  /** The conversation to which stored memories belong; by default they belong to none. */
  readonly sessionId?: string | undefined;
  /** Greatest number of tokens that one call of the tool `recall` returns; 1,000 by default. */
  readonly recallTokens?: number | undefined;
}

const RECALL_INPUT = z.object({
  query: z.string().min(1).max(8_192).describe('What to look for, in words or as a question.'),
});
const REMEMBER_INPUT = z.object({
  content: z.string().min(1).max(100_000).describe('One fact that stays useful, as a sentence that stands by itself.'),
});

/** A tool with the schema of its input, in the form that the AI SDK and Mastra take. */
interface Tool<Input, Output> {
  readonly description: string;
  readonly inputSchema: z.ZodType<Input, Input>;
  readonly execute: (input: Input) => Promise<Output>;
}

// A type and no interface, as only a type has the index signature that `ToolSet` of the AI SDK asks for.
export type CairnTools = {
  /**
   * Returns the memories that answer a query, as a text in which they are quoted and marked as data, not instructions.
   */
  readonly recall: Tool<z.infer<typeof RECALL_INPUT>, string>;
  /** Stores one memory and returns its id. */
  readonly remember: Tool<z.infer<typeof REMEMBER_INPUT>, { readonly id: string }>;
};

const DEFAULT_TOKENS = 1_000;

/**
 * Makes the tools `recall` and `remember`, which a model calls of its own accord. If a request fails, the tool throws
 * the client's error, and the framework shows it to the model.
 * @throws TypeError if `userId` is not a string
 */
export function createTools(options: CairnToolsOptions): CairnTools {
  const { client, userId, sessionId, recallTokens = DEFAULT_TOKENS } = options;
  checkUser(userId);
  const session = sessionId === undefined ? {} : { session_id: sessionId };
  return {
    recall: {
      description: 'Search long-term memory for what is known about the user and earlier conversations.',
      inputSchema: RECALL_INPUT,
      async execute({ query }) {
        const fields = { user_id: userId, token_budget: recallTokens, format: 'prompt' as const };
        return (await client.queryMemories({ ...fields, query })).text;
      },
    },
    remember: {
      description: 'Keep one fact in long-term memory. Never keep passwords or keys.',
      inputSchema: REMEMBER_INPUT,
      async execute({ content }) {
        const { id } = await client.addMemory({ content, user_id: userId, ...session });
        return { id };
      },
    },
  };
}
