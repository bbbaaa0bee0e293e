import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type Config,
  EngineError,
  isFromHere,
  isLoopback,
  openControlDatabase,
  readCredential,
  systemClock,
} from './engine/index.ts';

export interface MetricsServer {
  readonly url: string;
  stop(): Promise<void>;
}

export interface MetricsServerOptions {
  readonly config: Config;
  /** OM_METRICS_PORT or OM_WORKER_METRICS_PORT. */
  readonly portSetting: 'OM_METRICS_PORT' | 'OM_WORKER_METRICS_PORT';
  /** In Prometheus' text format; not complete while a thread of the process does not answer. */
  readonly read: () => Promise<{ readonly text: string; readonly isComplete: boolean }>;
}

const REQUEST_TIMEOUT_MS = 10_000;

/**
 * `GET /metrics` of a process on a port of its own. At OM_METRICS_HOST it is for whoever reaches that address. Where that is not set it
 * is at OM_HOST and for whoever holds any key, and as with the API only this machine is served where there is none. 503 with
 * what there is while a thread of the process does not answer.
 * @returns undefined if the port is 0
 * @throws EngineError `forbidden` if no key is configured and OM_HOST is not this machine's own; `unavailable` if the address cannot be had
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
    // Who asks whether this process is well hears that a thread of it does not answer.
    return { status: isComplete ? 200 : 503, text };
  };
  const server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, (request, response) => {
    void answer(request).then(
      ({ status, text }) =>
        response.writeHead(status, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }).end(text),
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

/** Whom a metrics server turns away. */
interface Guard {
  /** @returns the status that says so */
  refusal(request: IncomingMessage): 401 | 403 | undefined;
  close(): void;
}

/** The address is the protection. A web page in a browser on this machine is no part of it. */
function guardByAddress(host: string): Guard {
  return {
    refusal: (request) => (isLoopback(host) && !isFromHere(request) ? 403 : undefined),
    close() {},
  };
}

async function guardByKey(config: Config): Promise<Guard> {
  const control = await openControlDatabase(config, systemClock);
  if (control.isOpen() && !isLoopback(config.OM_HOST)) {
    control.close();
    throw new EngineError(
      'forbidden',
      `no key is configured, so metrics are not served at OM_HOST=${config.OM_HOST}: set OM_API_KEY, or listen on 127.0.0.1`,
    );
  }
  const isKnown = (request: IncomingMessage): boolean => {
    try {
      const secret = readCredential(request);
      return secret !== undefined && control.authenticate(secret) !== undefined;
    } catch {
      return false; // Two keys, or one that cannot be read.
    }
  };
  return {
    refusal(request) {
      if (control.isOpen()) return isFromHere(request) ? undefined : 403;
      return isKnown(request) ? undefined : 401;
    },
    close: () => control.close(),
  };
}
