import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { clientAddresses } from './client-address.ts';
import {
  type Config,
  EngineError,
  isFromHere,
  isLoopback,
  judgeMetricsReader,
  openControlDatabase,
  openGuessLimit,
  readCredential,
  systemClock,
} from './engine/index.ts';

export interface MetricsServer {
  /** URL of the metrics, with the path `/metrics`. */
  readonly url: string;
  /** Closes the server at once, with all of its connections. */
  stop(): Promise<void>;
}

export interface MetricsServerOptions {
  readonly config: Config;
  /** Name of the setting that holds the port. */
  readonly portSetting: 'OM_METRICS_PORT' | 'OM_WORKER_METRICS_PORT';
  /**
   * Reads the metrics in Prometheus' text format. `isComplete` is false if a thread or child process does not answer.
   * If it rejects, the request gets no answer, and its connection is closed.
   */
  readonly read: () => Promise<{ readonly text: string; readonly isComplete: boolean }>;
}

const HEADERS = {
  'content-type': 'text/plain; version=0.0.4; charset=utf-8',
  'cache-control': 'no-store',
  'cross-origin-resource-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
};

/** Longest time in which a whole request must have arrived (ms). */
const REQUEST_TIMEOUT_MS = 10_000;

/**
 * Serves `GET /metrics` of a process on a separate port. If OM_METRICS_HOST is set, metrics are served at that address
 * without a key. Otherwise they are served at OM_HOST to keys that `judgeMetricsReader` admits or, if no key is
 * configured, only to this machine, as with the API. The status is 503 while a thread or child process does not answer,
 * with the text of `read` in the body.
 * @returns undefined if the port is 0
 * @throws EngineError `forbidden` if no key is configured and other machines could reach OM_HOST; `unavailable` if the
 *   server cannot listen at the address
 */
export async function serveMetrics({
  config,
  portSetting,
  read,
}: MetricsServerOptions): Promise<MetricsServer | undefined> {
  const port = config[portSetting];
  if (port === 0) return undefined;
  const guard =
    config.OM_METRICS_HOST === undefined ? await guardByKey(config) : guardByAddress(config.OM_METRICS_HOST);
  const host = config.OM_METRICS_HOST ?? config.OM_HOST;
  const answer = async (request: IncomingMessage): Promise<{ status: number; text: string }> => {
    const status = guard.refusal(request) ?? statusOf(request);
    if (status !== 200) return { status, text: `${status}\n` };
    const { text, isComplete } = await read();
    // The status tells monitoring that a thread of this process does not answer.
    return { status: isComplete ? 200 : 503, text };
  };
  const server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, (request, response) => {
    void answer(request).then(
      ({ status, text }) => response.writeHead(status, HEADERS).end(text),
      () => response.destroy(),
    );
  });
  try {
    server.listen({ host: host.replace(/^\[(.*)\]$/, '$1'), port });
    await once(server, 'listening');
  } catch (error) {
    guard.close();
    const settings = `${config.OM_METRICS_HOST === undefined ? 'OM_HOST' : 'OM_METRICS_HOST'}, ${portSetting}`;
    throw new EngineError('unavailable', `cannot listen on ${host}:${port} (${settings})`, { cause: error });
  }
  const { address, family, port: taken } = server.address() as AddressInfo;
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${taken}/metrics`,
    async stop() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
      guard.close();
    },
  };
}

function statusOf(request: IncomingMessage): number {
  if (request.url?.split('?')[0] !== '/metrics') return 404;
  return request.method === 'GET' || request.method === 'HEAD' ? 200 : 405;
}

/** Decides which requests a metrics server refuses. */
interface Guard {
  /** Returns the status of the refusal; undefined if the request is admitted. */
  refusal(request: IncomingMessage): 401 | 403 | 429 | undefined;
  close(): void;
}

/**
 * Makes a guard that admits every request, except at a loopback address: there it refuses with 403 the requests that
 * web pages of other origins make through a browser on this machine.
 */
function guardByAddress(host: string): Guard {
  return {
    refusal: (request) => (isLoopback(host) && !isFromHere(request) ? 403 : undefined),
    close() {},
  };
}

/**
 * Makes a guard that admits the keys which `judgeMetricsReader` admits. Wrong keys are counted together with those that
 * the API is sent, and refused with 429 while their address must pause.
 */
async function guardByKey(config: Config): Promise<Guard> {
  const control = await openControlDatabase(config, systemClock);
  if (control.isOpen() && !isLoopback(config.OM_HOST)) {
    control.close();
    throw new EngineError(
      'forbidden',
      `no key is configured, so metrics are not served at OM_HOST=${config.OM_HOST}: ` +
        'set OM_API_KEY, or listen on 127.0.0.1',
    );
  }
  const guesses = await openGuessLimit(config, systemClock);
  const addressOf = clientAddresses(config.trustedProxies);
  const refusalOfKey = (secret: string, address: string) => {
    const verdict = judgeMetricsReader({ secret, address }, { control, config, guesses });
    if (verdict === 'admitted') return undefined;
    if (verdict === 'forbidden') return 403;
    if (guesses.pauseMs(address) > 0) return 429;
    guesses.noteWrong(address);
    return 401;
  };
  return {
    refusal(request) {
      if (control.isOpen()) return isFromHere(request) ? undefined : 403;
      const secret = credentialOf(request);
      return secret === undefined ? 401 : refusalOfKey(secret, addressOf(request));
    },
    close() {
      guesses.close();
      control.close();
    },
  };
}

/** Reads the key of a request; undefined if it has none, two keys, or a key that cannot be read. */
function credentialOf(request: IncomingMessage): string | undefined {
  try {
    return readCredential(request);
  } catch {
    return undefined;
  }
}
