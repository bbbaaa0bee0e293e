import net from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { ROUTES } from '../../src/api/routes.ts';
import { problemOfReply } from './check-reply.ts';
import { canary } from './canaries.ts';
import { packXlsx, packZip } from './make-office.ts';
import { makePdf } from './make-pdf.ts';
import { FORM_TYPE, multipart } from './multipart.ts';

/** A reply, with the request's method and route but without what was sent. */
interface HeardReply {
  readonly asked: string;
  readonly status: number;
  readonly text: string;
  readonly headers: string;
}

interface Ask {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * A caller that puts a canary (a word by which a leak is recognised) wherever a request may have a text, and keeps all
 * replies.
 */
export interface CanaryCaller {
  readonly heard: readonly HeardReply[];
  ask(method: string, route: string, options?: Ask): Promise<HeardReply>;
  /** Sends requests with every route and field, both requests that are accepted and requests that are refused. */
  sendEverything(): Promise<void>;
  /** Adds a memory and sends a query at the same time. Both contain a new text, so no cache has it. */
  addAndAsk(word: string): Promise<void>;
  /** Sends files of every format, most of them damaged, under names that are canaries. */
  sendDocuments(): Promise<void>;
  /** Waits until no job is unfinished. */
  idle(): Promise<void>;
}

export const CANARY_KEY = `${canary('apikey')}-of-the-operators`;
const USER = canary('userid');
const POLL_MS = 50;

/** A memory with a canary in every field. */
const MEMORY = {
  content: `The keeper ${canary('content')} met Ada ${canary('name')} at dusk.`,
  title: canary('title'),
  gist: canary('gist'),
  tags: [canary('tag')],
  metadata: { [canary('metadatakey')]: canary('metadatavalue'), nested: [{ deep: canary('metadatadeep') }] },
  user_id: USER,
  session_id: canary('sessionid'),
  external_id: canary('externalid'),
  entities: [canary('entity')],
  files: [`/tmp/${canary('file')}.txt`],
  type: canary('type'),
};

/**
 * Places whose canaries a reply may repeat to the caller who sent them: names of fields, and the media type of a body.
 */
export const ECHOED = ['fieldname', 'metadatakey', 'mediatype'];

export function createCanaryCaller(url: string): CanaryCaller {
  const heard: HeardReply[] = [];
  let round = 0;

  async function ask(method: string, route: string, { body, headers = {} }: Ask = {}): Promise<HeardReply> {
    const isRaw = typeof body === 'string' || body instanceof Uint8Array;
    const response = await fetch(url + route, {
      method,
      headers: {
        'x-api-key': CANARY_KEY,
        'user-agent': canary('useragent'),
        [canary('headername')]: canary('headervalue'),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined
        ? {}
        : { body: isRaw ? (body as NonNullable<RequestInit['body']>) : JSON.stringify(body) }),
    });
    const reply = {
      asked: `${method} ${route.replaceAll(/kanari\w+/g, '…')}`,
      status: response.status,
      text: await response.text(),
      headers: JSON.stringify([...response.headers]),
    };
    heard.push(reply);
    const { status, text } = reply;
    const contentType = response.headers.get('content-type') ?? '';
    const problem = problemOfReply({ method, target: route, status, contentType, text });
    if (problem !== undefined) throw new Error(problem);
    return reply;
  }

  async function taken(method: string, route: string, options: Ask = {}): Promise<Record<string, unknown>> {
    const reply = await ask(method, route, options);
    if (reply.status >= 300) throw new Error(`${reply.asked} was answered ${reply.status}: ${reply.text}`);
    return JSON.parse(reply.text) as Record<string, unknown>;
  }

  async function refused(status: number, method: string, route: string, options: Ask = {}): Promise<void> {
    const reply = await ask(method, route, options);
    if (reply.status !== status) throw new Error(`${reply.asked} was answered ${reply.status}: ${reply.text}`);
  }

  async function sendMemories(): Promise<void> {
    const idempotent = { 'idempotency-key': canary('idempotencykey') };
    const { id } = await taken('POST', '/memory/add', { body: MEMORY, headers: idempotent });
    const other = { content: `Another ${canary('othercontent')} of Ada ${canary('name')}`, user_id: USER };
    await refused(422, 'POST', '/memory/add', { body: other, headers: idempotent });
    const { id: otherId } = await taken('POST', '/memory/add', { body: other });
    const items = [other, { content: 7, [canary('fieldname')]: canary('batchvalue') }, { content: canary('batch') }];
    await ask('POST', '/memory/add/batch', { body: { items } });
    const lines = [JSON.stringify({ content: canary('line') }), `{"content":"${canary('malformedline')}`, '{"a":1}'];
    await ask('POST', '/memory/add/batch', {
      body: lines.join('\n'),
      headers: { 'content-type': 'application/x-ndjson' },
    });
    await taken('PATCH', `/memory/${String(id)}`, { body: { title: canary('newtitle'), user_id: USER } });
    await taken('GET', `/memory/${String(id)}/history?user_id=${USER}`);
    await refused(404, 'GET', `/memory/${String(id)}?user_id=${canary('otheruser')}`);
    for (const [route, ends] of [
      ['/memory/link', { src: id, dst: otherId, type: 'supports' }],
      ['/memory/contradict', { a: id, b: otherId }],
      ['/memory/supersede', { old_id: otherId, new_id: id }],
    ] as const)
      await ask('POST', route, { body: { ...ends, user_id: USER } });
    await taken('GET', `/entities?q=${canary('name')}`);
    await taken('GET', `/users/${USER}/memories`);
  }

  async function sendQueries(): Promise<void> {
    const filters = { tags: [canary('tag')], users: [USER], metadata: { [canary('metadatakey')]: { $eq: 'a' } } };
    const query = `"${canary('phrase')}" AND ${canary('query')}* NEAR(`;
    const { matches } = await taken('POST', '/memory/query', { body: { query: canary('content'), explain: true } });
    await taken('POST', '/memory/query', { body: { query, filters, explain: true, min_score: 0 } });
    await taken('POST', '/memory/query', { body: { query, format: 'prompt', user_id: USER } });
    const [first] = matches as readonly { id: string }[];
    if (first !== undefined) await taken('POST', '/explain', { body: { query, memory_id: first.id } });
    const nonsense = { [canary('metadatakey')]: { $between: [canary('operand')] } };
    await refused(400, 'POST', '/memory/query', { body: { query, filters: { metadata: nonsense } } });
    await refused(400, 'POST', '/memory/query', { body: { query, token: canary('token') } });
  }

  /** Sends each known field of some routes with wrong types, lengths and characters. */
  async function sendWrongFields(): Promise<void> {
    const wrongs = [
      { [canary('fieldname')]: canary('wrongtype') },
      [[canary('wrongtype')]],
      7,
      canary('toolong').repeat(40_000),
      `\u0000${canary('control')}`,
      `\ud800${canary('surrogate')}`,
    ];
    for (const [route, right, known] of [
      ['/memory/add', { content: 'a' }, [...Object.keys(MEMORY), 'event_time', 'importance', 'expires_at']],
      ['/memory/query', { query: 'a' }, ['query', 'k', 'filters', 'profile', 'as_of', 'token', 'weights', 'format']],
      ['/memory/ingest', { text: 'a' }, ['data', 'text', 'content_type', 'file_name', 'encoding', 'external_id']],
      ['/memory/ingest/url', {}, ['url', 'title']],
      ['/memory/reinforce', { id: 'a' }, ['id', 'boost']],
    ] as const) {
      for (const field of known)
        for (const wrong of wrongs) await ask('POST', route, { body: { ...right, [field]: wrong } });
    }
  }

  async function sendWrongRequests(): Promise<void> {
    const body = JSON.stringify({ content: canary('content') });
    const bodies = [
      `{"content":"${canary('malformed')}`,
      `${canary('malformed')}`,
      `{"${canary('malformed')}":}`,
      '"a"',
    ];
    for (const malformed of bodies) await refused(400, 'POST', '/memory/add', { body: malformed });
    for (const [name, value] of [
      ['content-type', canary('contenttype')],
      ['content-type', `text/${canary('mediatype')}`],
      ['content-type', `application/json; charset=${canary('charset')}`],
      ['content-encoding', canary('contentencoding')],
      ['authorization', `Bearer ${canary('wrongkey')}`],
      ['authorization', canary('scheme')],
      ['x-api-key', canary('wrongkey')],
      ['idempotency-key', `${canary('badidempotencykey')} with blanks`],
      ['prefer', `wait=${canary('prefer')}`],
      ['if-match', canary('ifmatch')],
      ['x-request-id', `${canary('requestid')} {}`],
      ['origin', `https://${canary('origin')}.example`],
      ['traceparent', canary('traceparent')],
    ] as const) {
      await ask('POST', '/memory/add', { body, headers: { [name]: value } });
    }
    await sendRaw(url, `GET /${canary('rawpath')} HTTP/1.1\r\n${canary('rawheader')}\r\n\r\n`);
    await sendRaw(url, `${canary('rawmethod')} / HTTP/1.1\r\nhost: a\r\n\r\n`);
    await refused(404, 'GET', `/${canary('path')}?${canary('querystring')}=${canary('querystring')}`);
    await refused(400, 'GET', `/memory/%zz${canary('escape')}`);
  }

  /**
   * Calls every route with canaries as path parameters, in the query string and in the body, whatever the route
   * expects.
   */
  async function askEveryRoute(): Promise<void> {
    for (const { method, path } of ROUTES) {
      const route = path.replaceAll(/:\w+/g, canary('pathid'));
      const query = `?${canary('fieldname')}=${canary('querystring')}&l=${canary('limit')}`;
      const withBody = method === 'get' || method === 'delete' ? {} : { body: { [canary('fieldname')]: canary('a') } };
      await ask(method.toUpperCase(), route, withBody);
      await ask(method.toUpperCase(), route + query, withBody);
    }
  }

  async function sendPages(): Promise<void> {
    const path = `${canary('urlpath')}?${canary('urlquery')}=${canary('urlquery')}#${canary('urlhash')}`;
    const send = (address: string) => ask('POST', '/memory/ingest/url', { body: { url: address } });
    await send(`https://${canary('urluser')}:${canary('urlpassword')}@example.org/${path}`);
    await send(`http://127.0.0.1:9/${path}`);
    await send(`http://${canary('urlhost')}.invalid/${path}`);
    await send(`ftp://${canary('urlhost')}.invalid/${path}`);
  }

  async function sendDocuments(): Promise<void> {
    for (const [fileName, content] of await brokenFiles()) {
      const name = `${canary('filename')}${fileName}`;
      const fields = { external_id: `${canary('documentid')}${fileName}`, title: canary('documenttitle') };
      const parts = [
        ...Object.entries(fields).map(([field, value]) => ({ name: field, content: value })),
        { name: 'file', fileName: name, content },
      ];
      await ask('POST', '/memory/ingest', { body: multipart(parts), headers: { 'content-type': FORM_TYPE } });
    }
    const part = { name: canary('fieldname'), content: canary('formvalue') };
    await ask('POST', '/memory/ingest', {
      body: multipart([part], { end: canary('afterform') }),
      headers: { 'content-type': FORM_TYPE },
    });
    await ask('POST', '/memory/ingest', { body: { text: `# A page\n\n${canary('documenttext')}`, title: 'A page' } });
    await sendPages();
  }

  return {
    heard,
    ask,
    async sendEverything() {
      await sendMemories();
      await sendQueries();
      await sendWrongFields();
      await sendWrongRequests();
      await askEveryRoute();
    },
    async addAndAsk(word) {
      const unique = `${word} ${++round}`;
      const query = `${canary('query')} ${unique}`;
      await Promise.all([
        ask('POST', '/memory/query', { body: { query, user_id: USER, rerank: 'llm' } }),
        ask('POST', '/memory/add', { body: { content: `${canary('content')} ${unique}`, user_id: USER } }),
      ]);
    },
    sendDocuments,
    async idle() {
      for (;;) {
        const { counts } = (await taken('GET', '/jobs?l=1')) as { counts: Record<string, number> };
        if (counts['queued']! + counts['active']! + counts['failed']! === 0) return;
        await pause(POLL_MS);
      }
    },
  };
}

/** Sends bytes to the server that no HTTP client would send. */
async function sendRaw(url: string, bytes: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket = net.connect(Number(port), hostname);
  await new Promise<void>((resolve) => {
    socket.on('close', () => resolve()).on('error', () => {});
    socket.end(bytes);
    socket.resume();
  });
}

/**
 * Makes files for each document format whose parser may report an error, as pairs of a file extension and the content.
 */
async function brokenFiles(): Promise<readonly (readonly [string, Uint8Array])[]> {
  const text = canary('documenttext');
  const pdf = makePdf({ pages: [{ texts: [{ text, x: 50, y: 700 }] }] });
  const xml = `<w:document><w:body><w:p><w:r><w:t>${text}</w:other></w:r>`;
  const office = (main: string, type: string) => ({
    '[Content_Types].xml': `<Types><Override PartName="/${main}" ContentType="${type}"/></Types>`,
    '_rels/.rels': `<Relationships><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="${main}"/></Relationships>`,
    [main]: xml,
    [`${canary('entryname')}.xml`]: xml,
  });
  const word = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml';
  const sheet = { name: canary('sheetname'), rows: `<row><c t="s"><v>${text}</v></c></row>` };
  return [
    ['.pdf', pdf],
    ['.pdf', pdf.subarray(0, pdf.length / 2)],
    ['.pdf', Buffer.from(`%PDF-1.7\n1 0 obj <</Type /${text}>> (${text}\n`)],
    ['.docx', await packZip(office('word/document.xml', word))],
    ['.docx', (await packZip(office('word/document.xml', word))).subarray(0, 300)],
    ['.pptx', await packZip(office('ppt/presentation.xml', 'application/xml'))],
    ['.xlsx', await packXlsx([sheet])],
    ['.epub', await packZip({ mimetype: 'application/epub+zip', 'META-INF/container.xml': xml })],
    ['.zip', await packZip({ [`${canary('entryname')}/a.txt`]: text })],
    ['.json', Buffer.from(`{"a": "${text}", ${text}}`)],
    ['.csv', Buffer.from(`a,"${text}\n"b"${text},"\n1,2,3,4,5`)],
    [
      '.eml',
      Buffer.from(`From: ${text}\nSubject: ${text}\nContent-Type: multipart/mixed; boundary=${text}\n\n${text}`),
    ],
    ['.html', Buffer.from(`<meta charset="${text}"><p>${text}${'<div>'.repeat(2_000)}`)],
    ['.md', Buffer.from(`---\ntitle: [${text}\n---\n# ${text}\n`)],
    ['.bin', Buffer.from([0, 1, 2, 3, ...Buffer.from(text), 0, 255])],
    ['.txt', Buffer.from([0xff, 0xfe, ...Buffer.from(text, 'utf16le'), 0xd8])],
  ];
}
