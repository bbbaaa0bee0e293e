import { createHash } from 'node:crypto';
import { type BaseMessage, type SystemMessage } from '@langchain/core/messages';
import { connect, type CairnOptions, type Send } from '../connection.ts';
import { checkUser } from '../check-user.ts';
import { queryText } from '../query-text.ts';
import { warn } from '../warn.ts';

/** What the middleware reads of an agent's runtime. */
interface AgentRuntime {
  readonly context?: unknown;
  readonly configurable?: unknown;
}

export interface CairnMemoryOptions extends CairnOptions {
  /** The user whose memories are recalled and stored, or how it follows from the agent's runtime. */
  readonly userId: string | ((runtime: AgentRuntime) => string);
  /** The conversation that stored memories belong to; by default the `thread_id` of the run, if it has one. */
  readonly sessionId?: string | ((runtime: AgentRuntime) => string) | undefined;
  /** Most tokens of recalled memories in a prompt; 1,000 by default, and 0 recalls nothing. */
  readonly recallTokens?: number | undefined;
  /** Whose messages are stored after a run: those of the `user`, which is the default, of `both` sides, or `none`. */
  readonly capture?: 'user' | 'both' | 'none' | undefined;
  /** Further fields of `POST /memory/query`, such as `filters` and `k`. */
  readonly query?: Readonly<Record<string, unknown>> | undefined;
  /**
   * Told of a recall or a store that failed; the agent goes on without it. By default it becomes a warning of the
   * process, or of the console where there is no process.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** What the middleware needs of a model's request. */
interface ModelRequest {
  readonly messages: readonly BaseMessage[];
  readonly systemMessage: SystemMessage;
  readonly runtime: AgentRuntime;
}

/** The parts of a middleware, as `createMiddleware` of `langchain` takes them. */
export interface CairnMemory {
  readonly name: string;
  readonly wrapModelCall: <Request extends ModelRequest, Reply>(
    request: Request,
    handler: (request: Request) => Reply | Promise<Reply>,
  ) => Promise<Reply>;
  readonly afterAgent: (state: { readonly messages: BaseMessage[] }, runtime: AgentRuntime) => Promise<void>;
}

const DEFAULT_TOKENS = 1_000;
/** Most turns of users whose recall is kept; an agent calls its model several times in one turn. */
const MAX_KEPT = 100;

/**
 * Gives an agent of LangChain a memory: before each call of the model it recalls what belongs to the user's last
 * message and puts it behind the system message; after a run it stores what was said. A recall is made once a turn of
 * the user.
 * @example createAgent({ model, tools, middleware: [createMiddleware(cairnMemory({ url, userId: 'ana' }))] })
 */
export function cairnMemory(options: CairnMemoryOptions): CairnMemory {
  const send = connect(options);
  const { capture = 'user', onError = warn } = options;
  const kept = new Map<string, Promise<string>>();
  const recallTurn = async ({ messages, runtime }: ModelRequest): Promise<string> => {
    const owner = { user_id: userOf(options, runtime), ...sessionOf(options, runtime) };
    const message = lastOfUser(messages);
    const ask = (asked: string) => recall(send, options, { asked, userId: owner.user_id });
    return recallOnce(kept, { message, key: turnKey(owner, message) }, ask);
  };
  return {
    name: 'CairnMemory',
    async wrapModelCall(request, handler) {
      const text = await recallTurn(request).catch((error: unknown) => {
        onError(error);
        return '';
      });
      if (text === '') return await handler(request);
      return await handler({ ...request, systemMessage: request.systemMessage.concat(`\n\n${text}`) });
    },
    async afterAgent({ messages }, runtime) {
      const items = capture === 'none' ? [] : turnOf(messages, capture).map((message) => toMemory(message));
      try {
        const owner = { user_id: userOf(options, runtime), ...sessionOf(options, runtime) };
        kept.delete(turnKey(owner, lastOfUser(messages)) ?? '');
        if (items.length === 0) return;
        const reply = await send('POST', '/memory/add/batch', { items: items.map((item) => ({ ...item, ...owner })) });
        const { results } = reply as { readonly results: readonly { readonly error?: { readonly code: string } }[] };
        const refused = results.find(({ error }) => error !== undefined);
        if (refused !== undefined) throw new Error(`a message was not stored: ${refused.error!.code}`);
      } catch (error) {
        onError(error);
      }
    },
  };
}

async function recall(
  send: Send,
  options: CairnMemoryOptions,
  { asked, userId }: { readonly asked: string; readonly userId: string },
): Promise<string> {
  const { recallTokens = DEFAULT_TOKENS, query } = options;
  if (recallTokens === 0) return '';
  const fields = { format: 'prompt', token_budget: recallTokens, ...query, user_id: userId };
  const reply = await send('POST', '/memory/query', { ...fields, query: queryText(asked) });
  const { text, ids } = reply as { readonly text: string; readonly ids: readonly string[] };
  return ids.length === 0 ? '' : text;
}

/** Names a turn: whose it is, and the message that began it. undefined for a message without an id. */
function turnKey(
  owner: { readonly user_id: string; readonly session_id?: string },
  message: BaseMessage | undefined,
): string | undefined {
  return message?.id === undefined
    ? undefined
    : JSON.stringify([owner.user_id, owner.session_id, message.id, message.text]);
}

/** Recalls for the message of a turn; while the turn lasts, a message that has an id is asked about once. */
function recallOnce(
  kept: Map<string, Promise<string>>,
  { message, key }: { readonly message: BaseMessage | undefined; readonly key: string | undefined },
  ask: (text: string) => Promise<string>,
): Promise<string> {
  if (message === undefined || message.text.trim() === '') return Promise.resolve('');
  const known = key === undefined ? undefined : kept.get(key);
  if (known !== undefined) return known;
  const answer = ask(message.text);
  if (key !== undefined) {
    kept.set(key, answer);
    // A failure is not kept: the next call of the model may have more luck.
    answer.catch(() => kept.delete(key));
    if (kept.size > MAX_KEPT) kept.delete(kept.keys().next().value!);
  }
  return answer;
}

function lastOfUser(messages: readonly BaseMessage[]): BaseMessage | undefined {
  return messages.findLast((message) => message.type === 'human');
}

/** The messages of the last turn that are stored: the user's last message, and the answer to it. */
function turnOf(messages: readonly BaseMessage[], capture: 'user' | 'both'): BaseMessage[] {
  const start = messages.findLastIndex((message) => message.type === 'human');
  if (start === -1) return [];
  const answer = messages.slice(start).findLast((message) => message.type === 'ai');
  const turn = capture === 'both' && answer !== undefined ? [messages[start]!, answer] : [messages[start]!];
  return turn.filter(({ text }) => text.trim() !== '');
}

function toMemory({ text, type, id }: BaseMessage) {
  return {
    content: text,
    type: type === 'ai' ? 'assistant_message' : 'user_message',
    // A run that is repeated stores nothing twice; an edited message is another one.
    ...(id === undefined
      ? {}
      : { external_id: `${id}#${createHash('sha256').update(text).digest('hex').slice(0, 16)}` }),
  };
}

/** Returns the user of a run. Throws TypeError for one that is no text: such a request would reach all users. */
function userOf({ userId }: CairnMemoryOptions, runtime: AgentRuntime): string {
  const user: unknown = typeof userId === 'string' ? userId : userId(runtime);
  checkUser(user);
  return user;
}

function sessionOf({ sessionId }: CairnMemoryOptions, runtime: AgentRuntime): { readonly session_id?: string } {
  const { thread_id: thread } = (runtime.configurable ?? {}) as { readonly thread_id?: unknown };
  const given = typeof sessionId === 'function' ? sessionId(runtime) : sessionId;
  const session = given ?? (typeof thread === 'string' ? thread : '');
  return session === '' ? {} : { session_id: session };
}
