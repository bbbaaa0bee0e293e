/**
 * Requests that a web page of another origin can make a browser send to a service on this machine, without a preflight
 * that would ask first. Bodies and headers are those that browsers send.
 */
import type { RawRequest } from './raw-request.ts';

const BOUNDARY = '----WebKitFormBoundary7MA4YWxkTrZu0gW';

/** A form with a file, as `<form enctype=multipart/form-data>` sends it. */
const form = (text: string) =>
  [
    `--${BOUNDARY}`,
    'Content-Disposition: form-data; name="user_id"',
    '',
    'ana',
    `--${BOUNDARY}`,
    'Content-Disposition: form-data; name="file"; filename="n.md"',
    'Content-Type: text/markdown',
    '',
    text,
    `--${BOUNDARY}--`,
    '',
  ].join('\r\n');

interface SimpleRequest {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly type?: string;
  readonly body?: string;
}

const JSON_TEXT = '{"content":"planted by a page"}';

/** Requests that browsers call simple: they are sent without asking the server first. */
export const SIMPLE_REQUESTS: readonly SimpleRequest[] = [
  ...['/memory/ingest', '/memory/ingest?wait=5000'].map((path) => ({
    name: `a form at ${path}`,
    method: 'POST',
    path,
    type: `multipart/form-data; boundary=${BOUNDARY}`,
    body: form('# Suppliers\r\n\r\nThe bank account of supplier Acme is XX00.\r\n'),
  })),
  ...['/admin/reembed', '/admin/reembed/pause', '/memory/reflect'].map((path) => ({
    name: `no body at ${path}`,
    method: 'POST',
    path,
  })),
  ...['/memory/add', '/memory/add/batch', '/memory/query', '/memory/ingest', '/documents/batch'].flatMap((path) =>
    ['text/plain;charset=UTF-8', 'application/x-www-form-urlencoded', undefined].map((type) => ({
      name: `${type ?? 'no type'} at ${path}`,
      method: 'POST',
      path,
      ...(type === undefined ? {} : { type }),
      body: JSON_TEXT,
    })),
  ),
];

/** What browsers say about a page of another origin, by the way in which it sends the request. */
export const FOREIGN_ORIGINS: Readonly<Record<string, readonly string[]>> = {
  'fetch of another site': ['origin', 'https://evil.example', 'sec-fetch-site', 'cross-site', 'sec-fetch-mode', 'cors'],
  'fetch without CORS': ['origin', 'https://evil.example', 'sec-fetch-site', 'cross-site', 'sec-fetch-mode', 'no-cors'],
  'form of another site': [
    ...['origin', 'https://evil.example', 'referer', 'https://evil.example/', 'sec-fetch-site', 'cross-site'],
    ...['sec-fetch-mode', 'navigate', 'sec-fetch-dest', 'document', 'sec-fetch-user', '?1'],
  ],
  'a browser without Sec-Fetch-Site': ['origin', 'https://evil.example'],
  'a sandboxed frame': ['origin', 'null', 'sec-fetch-site', 'cross-site'],
  'a local file in an old browser': ['origin', 'null'],
  'another port of this machine': ['origin', 'http://localhost:3000', 'sec-fetch-site', 'same-site'],
  'another port in an old browser': ['origin', 'http://127.0.0.1:3000'],
  'a sibling name': ['origin', 'http://evil.localhost', 'sec-fetch-site', 'same-site'],
  'no Origin': ['sec-fetch-site', 'cross-site'],
  'an unknown relation': ['sec-fetch-site', 'sideways'],
  'two relations': ['sec-fetch-site', 'none', 'sec-fetch-site', 'cross-site'],
  'two origins': ['origin', 'http://localhost', 'origin', 'https://evil.example'],
  'a rebound name behind a proxy': ['origin', 'http://evil.example:5173', 'sec-fetch-site', 'same-origin'],
  'a look-alike of loopback': ['origin', 'http://127.0.0.1.evil.example', 'sec-fetch-site', 'none'],
  'an extension': ['origin', 'chrome-extension://aaaabbbbccccddddeeeeffffgggghhhh'],
};

/** Host names under which a rebound page reaches this machine: none of them is a loopback name. */
export const REBOUND_HOSTS: readonly string[] = [
  'evil.example',
  'localhost.evil.example',
  '127.0.0.1.evil.example',
  'evil.example:80',
  'localhost.',
  '192.168.0.1',
  '0.0.0.0',
  '[::]',
  'x:localhost',
  'localhost@evil.example',
  '2130706433',
  '127.1',
];

/** Makes the bytes of a simple request that a page of `origin` sends to `host`. */
export function fromPage(request: SimpleRequest, origin: readonly string[], host: string): RawRequest {
  const { method, path, type, body } = request;
  const headers = ['host', host, ...origin, ...(type === undefined ? [] : ['content-type', type])];
  return { method, path, headers, ...(body === undefined ? {} : { body }) };
}

/** Headers of a preflight, with which a browser asks before a page's script may send any other request. */
export const preflightOf = (origin: string, method: string, headers = 'content-type,x-api-key'): readonly string[] => [
  ...['origin', origin, 'access-control-request-method', method, 'access-control-request-headers', headers],
  ...['sec-fetch-site', 'cross-site', 'sec-fetch-mode', 'cors'],
];
