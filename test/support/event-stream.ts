import { once } from 'node:events';
import http from 'node:http';
import { ADMIN_KEY, type TestApi } from './start-api.ts';

interface StreamedEvent {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: { readonly id?: string; readonly state?: string };
}

export interface EventReader {
  readonly request: http.ClientRequest;
  readonly response: http.IncomingMessage;
  /** Returns the next event; undefined at the end of the stream. */
  next(): Promise<StreamedEvent | undefined>;
}

/** Opens a stream of server-sent events; comments are left out. */
export async function openEvents(
  from: TestApi,
  path: string,
  { key = ADMIN_KEY, headers: more = {} }: { readonly key?: string; readonly headers?: Record<string, string> } = {},
): Promise<EventReader> {
  const headers = { authorization: `Bearer ${key}`, ...more };
  const request = http.get({ port: from.port, host: '127.0.0.1', path, headers });
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  response.setEncoding('utf8').on('error', () => {});
  const chunks = response[Symbol.asyncIterator]() as AsyncIterator<string>;
  let text = '';
  const next = async (): Promise<StreamedEvent | undefined> => {
    for (;;) {
      const end = text.indexOf('\n\n');
      const block = text.slice(0, end);
      if (end !== -1) {
        text = text.slice(end + 2);
        const fields = /^(?:id: (.*)\n)?event: (\w+)\ndata: (.*)$/.exec(block);
        if (fields) return { id: fields[1], event: fields[2]!, data: JSON.parse(fields[3]!) as StreamedEvent['data'] };
      } else {
        const chunk = await chunks.next();
        if (chunk.done) return undefined;
        text += chunk.value;
      }
    }
  };
  return { request, response, next };
}
