import { once } from 'node:events';
import { linesOf } from '../../api/lines.ts';
import { createMcpEndpoint, MAX_MESSAGE_BYTES, type McpEndpoint } from '../mcp/endpoint.ts';
import { createServerFinder } from '../mcp/find-server.ts';
import { cancelledBy, errorReply, headersOf, isHandshake, requestId, agreedRevision } from '../mcp/messages.ts';

export interface McpCommandOptions {
  readonly user?: string;
  readonly allowDelete?: boolean;
  readonly feedback?: boolean;
  readonly url?: string;
  readonly key?: string;
}

/** Greatest number of messages that may wait for their answers at the same time. Further messages are sent later. */
const MAX_UNDER_WAY = 64;
/**
 * Longest time from a message to the end of its answer (ms); beyond it a request gets an error answer. The server's own
 * deadline for a tool is far shorter.
 */
const EXCHANGE_MS = 90_000;
/** Error code of JSON-RPC 2.0 for a message that is not valid JSON. */
const PARSE_ERROR = -32700;
/** Error code of JSON-RPC 2.0 for a request that could not be passed on, or was not answered in time. */
const INTERNAL_ERROR = -32603;

/**
 * Runs `cairn mcp`: sends each message from standard input to the endpoint `/mcp` of a server, and writes the server's
 * answers to standard output, until standard input ends. If no server is named or running, it starts one. The command
 * does not open the data itself, so several clients can share one memory.
 * @throws CliError if no server is found and none can be started
 */
export async function mcp(options: McpCommandOptions, environment: NodeJS.ProcessEnv = process.env): Promise<void> {
  const { user, allowDelete, feedback, url, key = environment.CAIRN_API_KEY || environment.OM_API_KEY } = options;
  const finder = createServerFinder(url ?? (environment.CAIRN_URL || undefined), environment);
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.once(signal, () => void finder.stop().finally(() => process.exit(0)));
  try {
    const address = await finder.find();
    const path = user === undefined ? 'mcp' : `mcp/users/${encodeURIComponent(user)}`;
    const tools = [...(allowDelete === true ? ['forget'] : []), ...(feedback === true ? ['feedback'] : [])];
    const target = tools.length === 0 ? path : `${path}?tools=${tools.join(',')}`;
    const tenant = environment.CAIRN_TENANT || undefined;
    await passMessages(createBridge(createMcpEndpoint({ finder, address, target, key, tenant })));
  } finally {
    await finder.stop();
  }
  // A connection that is kept alive would hold the process.
  process.exit(0);
}

/**
 * Sends one message of the client to the server and writes the answers to standard output. It never throws: the failure
 * of a request that was not cancelled is written as an error answer; that of a notification is not told.
 */
type Bridge = (text: string) => Promise<void>;

async function passMessages(pass: Bridge): Promise<void> {
  const underWay = new Set<Promise<void>>();
  for await (const lines of linesOf(process.stdin, { maxBytes: MAX_MESSAGE_BYTES })) {
    for (const { bytes } of lines) {
      const passing = pass(bytes?.toString() ?? '').finally(() => underWay.delete(passing));
      underWay.add(passing);
      if (underWay.size >= MAX_UNDER_WAY) await Promise.race(underWay);
    }
  }
  await Promise.all(underWay);
}

function createBridge(endpoint: McpEndpoint): Bridge {
  const underWay = new Map<unknown, AbortController>();
  /**
   * Protocol revision on which client and server have agreed in the handshake; undefined before. Clients of the
   * revision 2025 must send it in a header of each HTTP request.
   */
  let negotiated: string | undefined;

  return async (text) => {
    const message = parseMessage(text);
    if (message === undefined) return write(errorReply(undefined, PARSE_ERROR, 'the line is no JSON'));
    const cancelled = cancelledBy(message);
    // Over HTTP a request is cancelled by closing its connection.
    if (cancelled !== undefined) return underWay.get(cancelled)?.abort();
    const id = requestId(message);
    const controller = new AbortController();
    if (id !== undefined) underWay.set(id, controller);
    const signal = AbortSignal.any([controller.signal, AbortSignal.timeout(EXCHANGE_MS)]);
    try {
      for await (const reply of endpoint.exchange(text, headersOf(message, negotiated), signal)) {
        if (isHandshake(message)) negotiated = agreedRevision(JSON.parse(reply));
        await write(reply);
      }
    } catch (error) {
      const words = error instanceof Error ? error.message : String(error);
      if (id !== undefined && !controller.signal.aborted) await write(errorReply(id, INTERNAL_ERROR, words));
    } finally {
      if (underWay.get(id) === controller) underWay.delete(id);
    }
  };
}

function parseMessage(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

async function write(reply: string): Promise<void> {
  if (!process.stdout.write(`${reply}\n`)) await once(process.stdout, 'drain');
}
