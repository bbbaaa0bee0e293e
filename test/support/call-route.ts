import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { TenantCall } from '../../src/api/route.ts';
import type { Tenant } from '../../src/engine/engine.ts';
import { routeOf } from './check-reply.ts';

/** A request to one route, without a server: the key of an admin of the default tenant sends it. */
export interface CalledRoute {
  readonly method: string;
  readonly path: string;
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
  /** Objects that are sent as NDJSON, in place of a body. */
  readonly lines?: readonly object[];
  /** Called before the handler is. */
  readonly onBegin?: (response: ServerResponse) => void;
  /** Called when the reply ends. */
  readonly onEnd?: () => void;
  /** Parts of the call that are used in place of the usual ones. */
  readonly parts?: Partial<TenantCall>;
}

/**
 * Calls the handler of a route at once, so that a test decides in which turn of the event loop requests begin.
 * @returns the text of the reply
 * @throws what the handler throws
 */
export async function callRoute(
  tenant: Tenant,
  { method, path, params = {}, query = {}, body, lines, onBegin, onEnd, parts }: CalledRoute,
): Promise<string> {
  const route = routeOf(method, path);
  if (route === undefined || route.access === 'anyone') throw new Error(`no route of a tenant: ${method} ${path}`);
  const request = new IncomingMessage(new Socket());
  if (body !== undefined || lines !== undefined) {
    const text = lines?.map((line) => `${JSON.stringify(line)}\n`).join('') ?? JSON.stringify(body);
    request.headers['content-type'] = lines === undefined ? 'application/json' : 'application/x-ndjson';
    request.headers['content-length'] = String(Buffer.byteLength(text));
    request.push(text);
    request.push(null);
    request.complete = true;
  }
  const response = new ServerResponse(request);
  const sent: string[] = [];
  const end = response.end.bind(response) as (text: string) => ServerResponse;
  Object.assign(response, {
    locals: {},
    write: (chunk: Buffer) => sent.push(chunk.toString()),
    end: (text = '') => {
      sent.push(text);
      onEnd?.();
      end('');
      // As at the end of a real one, whose client has read it.
      response.emit('close');
      return response;
    },
  });
  onBegin?.(response);
  const principal = { tenantId: 'default', keyId: 'admin', role: 'admin' };
  const call = { tenant, request: Object.assign(request, { params, query, res: response }), response, principal };
  await route.handle({ ...call, ...parts } as unknown as TenantCall);
  return sent.join('');
}
