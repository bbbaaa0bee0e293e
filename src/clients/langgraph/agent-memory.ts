import { createHash } from 'node:crypto';
import { type BaseMessage, type SystemMessage } from '@langchain/core/messages';
import { connect, type CairnOptions, type Send } from '../connection.ts';
import { checkUser } from '../check-user.ts';
import { queryText } from '../query-text.ts';
import { warn } from '../warn.ts';

/** The part of an agent's runtime that the middleware uses. */
interface AgentRuntime {
  readonly context?: unknown;
  readonly configurable?: unknown;
}

export interface CairnMemoryOptions extends CairnOptions {
  /** The user whose memories are recalled and stored, or a function that finds the user in the agent's runtime. */
  readonly userId: string | ((runtime: AgentRuntime) => string);
  /**
   * The conversation to which stored memories belong, or a function that finds it. By default it is the `thread_id` of
   * the run; without one, memories belong to no conversation.
   */
  readonly sessionId?: string | ((runtime: AgentRuntime) => string) | undefined;
  /** Greatest number of tokens of recalled memories in a prompt; 1,000 by default. With 0, nothing is recalled. */
  readonly recallTokens?: number | undefined;
  /** The side whose messages are stored after a run: the `user` (the default), `both`, or `none`. */
  readonly capture?: 'user' | 'both' | 'none' | undefined;
  /**
   * Further fields of `POST /memory/query`, such as `filters` and `k`; no `format`. A `token_budget` replaces
   * `recallTokens`, unless that is 0.
   */
  readonly query?: Readonly<Record<string, unknown>> | undefined;
  /**
   * Called with the error of a recall or store that failed; the agent goes on without it. It must not throw. By default
   * the error becomes a warning of the process or, in edge runtimes without a process, of the console.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** The part of a model's request that the middleware uses. */
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
/**
 * Greatest number of turns whose recalled memories are kept. A turn is a message of the user and the model calls that
 * answer it.
 */
const MAX_KEPT = 100;

/**
 * Makes a middleware that gives an agent of LangChain a memory. Before each call of the model, memories that help to
 * answer the user's last message are added to the system message; several model calls for one message share one recall,
 * if the message has an id. After a run, messages are stored as `capture` says. The agent waits for each recall and
 * store, at most `timeoutMs`. If one fails, the agent goes on.
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

/**
 * Returns a key that identifies a turn: its user, its conversation, and the id and the text of the user's message that
 * began it; undefined if there is no message or it has no id.
 */
function turnKey(
  owner: { readonly user_id: string; readonly session_id?: string },
  message: BaseMessage | undefined,
): string | undefined {
  return message?.id === undefined
    ? undefined
    : JSON.stringify([owner.user_id, owner.session_id, message.id, message.text]);
}

/**
 * Recalls memories for the user's message that began a turn, and returns them as text; '' if there is no message or it
 * is blank. The result is kept under `key` for later calls in the same turn, unless the recall fails; without a key,
 * each call recalls anew.
 * @param ask recalls memories for a text
 */
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
    // A failure is not kept, so that the next call of the model tries again.
    answer.catch(() => kept.delete(key));
    if (kept.size > MAX_KEPT) kept.delete(kept.keys().next().value!);
  }
  return answer;
}

function lastOfUser(messages: readonly BaseMessage[]): BaseMessage | undefined {
  return messages.findLast((message) => message.type === 'human');
}

/**
 * Returns the messages of the last turn that are to be stored: the user's message and, if `capture` is `both`, the last
 * answer to it. Blank messages are left out.
 */
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

/**
 * Returns the user of a run.
 * @throws TypeError if it is not a string: a request without a user would reach the memories of all users
 */
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
