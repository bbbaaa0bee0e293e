import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';

/** Statuses with which Node answers what it cannot read as a request, by the code of its error; 400 for all others. */
const STATUS_OF: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

/** A connection with the response that it sends now, which no public type has. */
type Answering = Socket & {
  readonly _httpMessage?: (ServerResponse & { readonly _headerSent?: boolean }) | null;
};

/** Tells whether an error of a connection is that its request, or the head of it, did not arrive in time. */
export function isTooLate(error: NodeJS.ErrnoException): boolean {
  return error.code === 'ERR_HTTP_REQUEST_TIMEOUT';
}

/**
 * Answers a client whose bytes are no request, or come too late, and closes its connection. It does what Node does if
 * there is no listener for `clientError`: nothing is answered into a response whose headers were sent.
 */
export function refuseClient(error: NodeJS.ErrnoException, socket: Socket): void {
  const { _httpMessage: response } = socket as Answering;
  if (socket.writable && response?._headerSent !== true) {
    const status = STATUS_OF[error.code ?? ''] ?? 400;
    socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\n\r\n`);
  }
  // For a late client, the listeners need no error with a stack.
  socket.destroy(isTooLate(error) ? undefined : error);
}
