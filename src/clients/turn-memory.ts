import type { Client, QueryMemoriesInput } from '../client/index.ts';
import { checkUser } from './check-user.ts';
import { queryText } from './query-text.ts';
import { warn } from './warn.ts';

/** What the adapters of agent frameworks take, whichever the framework. */
export interface TurnMemoryOptions {
  /** The client of the server, as `createClient` of `cairn-memory/client` makes it. */
  readonly client: Pick<Client, 'queryMemories' | 'addMemories'>;
  /** Most tokens of recalled memories in a prompt; 1,000 by default, and 0 recalls nothing. */
  readonly recallTokens?: number | undefined;
  /** Longest time that a model waits for a recall, in milliseconds; 5,000 by default. */
  readonly recallTimeoutMs?: number | undefined;
  /** Further fields of `POST /memory/query`, such as `filters` and `min_score`. */
  readonly query?: Omit<QueryMemoriesInput, 'query' | 'format' | 'user_id' | 'token_budget'> | undefined;
  /** Whose messages are stored after a reply: those of the `user`, which is the default, of `both` sides, or `none`. */
  readonly capture?: 'user' | 'both' | 'none' | undefined;
  /**
   * Told of each store that is under way, which nobody waits for otherwise. A platform that stops a function with its
   * reply has to be told to wait: pass `waitUntil` of Vercel or Cloudflare here. The promise never rejects.
   */
  readonly waitUntil?: ((work: Promise<void>) => void) | undefined;
  /**
   * Told of a recall or a store that failed; the agent goes on without it. By default it becomes a warning of the
   * process, or of the console where there is no process, as in edge runtimes.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** Who speaks, and in which conversation. */
export interface Speaker {
  readonly userId: string;
  readonly sessionId?: string | undefined;
}

/** The speaker of a turn, or how it follows from the caller's own code, which may fail. */
type SpeakerOf = Speaker | (() => Speaker);

/** What was said in one turn; texts without words are not stored. */
interface Turn {
  readonly speaker: SpeakerOf;
  readonly asked: string;
  readonly answer: string;
}

export interface TurnMemory {
  /**
   * Recalls what belongs to a message of the user, as a text for a language model: quoted, with its sources, and marked
   * as no instructions. '' if nothing does, or if the recall failed, which `onError` is told. Never rejects.
   */
  recall(asked: string, speaker: SpeakerOf, signal?: AbortSignal): Promise<string>;
  /** Stores a turn in the background. Returns at once and never throws. */
  capture(turn: Turn): void;
}

const DEFAULT_TOKENS = 1_000;
const DEFAULT_TIMEOUT_MS = 5_000;

export function createTurnMemory(options: TurnMemoryOptions): TurnMemory {
  const { client, onError = warn } = options;
  const { recallTokens = DEFAULT_TOKENS, recallTimeoutMs = DEFAULT_TIMEOUT_MS, query } = options;
  return {
    async recall(asked, speaker, signal) {
      if (recallTokens === 0 || asked.trim() === '') return '';
      try {
        const { userId } = resolved(speaker);
        const fields = { ...query, user_id: userId, token_budget: recallTokens, format: 'prompt' as const };
        const input = { ...fields, query: queryText(asked) };
        // One attempt: the user waits for it, and the next turn recalls again.
        const { text, ids } = await client.queryMemories(input, { signal, timeoutMs: recallTimeoutMs, retries: 0 });
        return ids.length === 0 ? '' : text;
      } catch (error) {
        if (signal?.aborted !== true) onError(error);
        return '';
      }
    },
    capture(turn) {
      try {
        const items = memoriesOf(turn, options.capture ?? 'user');
        if (items.length === 0) return;
        const work = store(client, items).catch(onError);
        options.waitUntil?.(work);
      } catch (error) {
        onError(error);
      }
    },
  };
}

/** @throws TypeError for a user that is no text; what the caller's own code throws */
function resolved(speaker: SpeakerOf): Speaker {
  const found = typeof speaker === 'function' ? speaker() : speaker;
  checkUser(found.userId);
  return found;
}

/** Reasons for which a model stops in the midst of a turn, by the names of the AI SDK and Mastra. */
const UNFINISHED: readonly string[] = ['tool-calls', 'error', 'suspended', 'tripwire'];

/** Whether a reply ends its turn. After a call of tools, for one, the model is called again. */
export function endsTurn(finishReason: string): boolean {
  return !UNFINISHED.includes(finishReason);
}

interface CapturedMessage {
  readonly content: string;
  readonly type: 'user_message' | 'assistant_message';
  readonly user_id: string;
  readonly session_id?: string;
}

function memoriesOf(turn: Turn, capture: 'user' | 'both' | 'none'): CapturedMessage[] {
  const { asked, answer } = turn;
  const texts = [asked, answer].slice(0, { none: 0, user: 1, both: 2 }[capture]);
  if (texts.every((text) => text.trim() === '')) return [];
  const { userId, sessionId } = resolved(turn.speaker);
  const owner = { user_id: userId, ...(sessionId === undefined ? {} : { session_id: sessionId }) };
  const said: CapturedMessage[] = [
    { content: asked, type: 'user_message', ...owner },
    { content: answer, type: 'assistant_message', ...owner },
  ];
  return said.slice(0, texts.length).filter(({ content }) => content.trim() !== '');
}

async function store(client: Pick<Client, 'addMemories'>, items: readonly CapturedMessage[]): Promise<void> {
  const { results } = await client.addMemories({ items });
  const refused = results.find((result) => 'error' in result);
  if (refused !== undefined) throw new Error(`a message was not stored: ${refused.error.code}`);
}
