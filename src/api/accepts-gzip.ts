import type { IncomingMessage } from 'node:http';

/** Tells whether a client takes a reply that is compressed: its `Accept-Encoding` names gzip, and not with q=0. */
export function acceptsGzip({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  const codings = String(headers['accept-encoding'] ?? '').split(',');
  return codings.some((coding) => /^\s*gzip\s*(?:;|$)/i.test(coding) && !/;\s*q\s*=\s*0(?:\.0*)?\s*$/i.test(coding));
}
