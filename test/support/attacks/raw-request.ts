import http from 'node:http';

/** A request as bytes on the wire: header lines are sent as they stand, duplicates too, which `fetch` would not do. */
export interface RawRequest {
  readonly method: string;
  readonly path: string;
  /** Names and values in turn; a `host` must be among them. `content-length` is added unless the body is chunked. */
  readonly headers: readonly string[];
  readonly body?: string | Buffer;
}

export interface RawReply {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
}

/** Sends a request to a port of this machine, on a connection of its own. */
export function sendRaw(port: number, { method, path, headers, body }: RawRequest): Promise<RawReply> {
  const isChunked = headers.includes('transfer-encoding');
  const length = body === undefined || isChunked ? [] : ['content-length', String(Buffer.byteLength(body))];
  return new Promise((resolve, reject) => {
    const request = http.request(
      { port, path, method, host: '127.0.0.1', headers: [...headers, ...length], setHost: false, agent: false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: Buffer.concat(chunks).toString('utf8'),
          }),
        );
      },
    );
    request.on('error', reject).end(body);
  });
}
