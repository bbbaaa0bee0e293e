import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApi, type Reply, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** Without workers: a document stays as it was handed in. */
let api: TestApi;
beforeAll(async () => void (api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } })));
afterAll(() => api.stop());

let serial = 0;
/** A text of its own each time, so that nothing is known already. */
const freshText = () => `Text number ${serial++} of these tests.`;
const ingest = (body: unknown, query = '') => api.request('POST', `/memory/ingest${query}`, { body });
const sha256 = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const idOf = (reply: Reply) => reply.body['document_id'] as string;
const getDocument = async (reply: Reply) => {
  expect([200, 202], reply.text).toContain(reply.status);
  return (await api.request('GET', `/documents/${idOf(reply)}`)).body;
};

describe('POST /memory/ingest with JSON', () => {
  test('answers at once with what to ask for later', async () => {
    const reply = await ingest({ text: freshText(), user_id: 'ana' });
    expect([reply.status, reply.body]).toEqual([
      202,
      {
        document_id: expect.any(String),
        job_id: expect.any(String),
        state: 'queued',
        outcome: 'accepted',
        token: expect.any(String),
      },
    ]);
    expect(reply.headers.get('location')).toBe(`/documents/${idOf(reply)}`);
    expect((await api.request('GET', `/jobs/${reply.body.job_id}`)).body).toMatchObject({
      kind: 'document',
      document_id: idOf(reply),
      memory_id: null,
      step: 'ingest',
      state: 'queued',
    });
  });

  test('keeps what is said about the document', async () => {
    const said = {
      user_id: 'ana',
      session_id: 's1',
      external_id: 'wiki-1',
      title: 'A title',
      type: 'note',
      tags: ['a', 'b'],
      metadata: { team: { name: 'x' } },
      event_time: 1_700_000_000_000,
      expires_at: 4_000_000_000_000,
    };
    const document = await getDocument(await ingest({ text: freshText(), ...said, file_name: 'docs/a.md' }));
    expect(document).toMatchObject({ ...said, file_name: 'a.md', format: 'markdown', source: 'upload', url: null });
  });

  test.each<[string, object, Buffer]>([
    ['text as it stands', { text: '# Zwölf 你\r\n' }, Buffer.from('# Zwölf 你\r\n')],
    ['text that looks like base64', { data: 'aGVsbG8=', content_type: 'text/plain' }, Buffer.from('aGVsbG8=')],
    ['OpenMemory: md', { data: '# Heading', content_type: 'md' }, Buffer.from('# Heading')],
    [
      'OpenMemory: txt',
      { data: 'plain words', content_type: 'txt', config: { sec_sz: 3_000 } },
      Buffer.from('plain words'),
    ],
    ['OpenMemory: html', { data: '<p>x</p>', content_type: 'html', metadata: null }, Buffer.from('<p>x</p>')],
    ['OpenMemory: pdf', { data: 'JVBERi0xLjc=', content_type: 'pdf' }, Buffer.from('%PDF-1.7')],
    ['a binary media type', { data: 'JVBERi0xLjYK', content_type: 'application/pdf' }, Buffer.from('%PDF-1.6\n')],
    ['a binary name', { data: 'JVBERi0xLjUK', file_name: 'x.PDF' }, Buffer.from('%PDF-1.5\n')],
    ['bytes of no type', { data: 'JVBERi0xLjQK', content_type: 'application/octet-stream' }, Buffer.from('%PDF-1.4\n')],
    ['a text in base64', { data: 'aGVsbG8h', content_type: 'text/plain', encoding: 'base64' }, Buffer.from('hello!')],
    ['base64 for URLs, without padding', { data: 'Pz8_Pj4-fg', encoding: 'base64' }, Buffer.from('???>>>~')],
    ['base64 in lines', { data: 'aGVs\r\nbG8g\r\ndGhl\ncmU=\n', encoding: 'base64' }, Buffer.from('hello there')],
  ])('%s', async (_name, body, bytes) => {
    const document = await getDocument(await ingest({ ...body, user_id: `bytes ${serial++}` }));
    expect(document).toMatchObject({ bytes: bytes.length, sha256: sha256(bytes) });
  });

  test('whatever the bytes, they are the ones that were sent', () =>
    fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 600 }), fc.boolean(), async (random, forUrls) => {
        const bytes = Buffer.concat([Buffer.from('%PDF-1.7\n'), random]);
        const data = bytes.toString(forUrls ? 'base64url' : 'base64');
        const { sha256: stored } = await getDocument(await ingest({ data, content_type: 'application/pdf' }));
        expect(stored).toBe(sha256(bytes));
      }),
      { numRuns: 25 },
    ));

  test.each<[string, unknown, number, RegExp]>([
    ['nothing', {}, 400, /either data or text/],
    ['both', { data: 'eA==', text: 'x', encoding: 'base64' }, 400, /either data or text/],
    ['data of which nothing is known', { data: 'x' }, 400, /content_type, file_name or encoding/],
    ['text in base64', { text: 'eA==', encoding: 'base64' }, 400, /encoding: goes with data/],
    ['a list', [], 400, /expected a JSON object/],
    ['no base64', { data: 'canary!', encoding: 'base64' }, 400, /expected base64/],
    ['half a base64', { data: 'JVBERi0xL', encoding: 'base64' }, 400, /expected base64/],
    ['base64 that goes on after its end', { data: 'eA==eA==', encoding: 'base64' }, 400, /expected base64/],
    ['base64 with too long an end', { data: 'eA====', encoding: 'base64' }, 400, /expected base64/],
    ['another encoding', { data: 'x', encoding: 'hex' }, 400, /encoding: expected one of base64, utf8/],
    ['half a surrogate pair', '{"text":"a\\ud800"}', 400, /surrogate/],
    ['an unknown field', { text: 'x', content: 'x' }, 400, /unknown field "content"; allowed: content_type/],
    ['a URL', { url: 'https://example.com/' }, 400, /unknown field "url"/],
    ['an unknown short name', { data: 'x', content_type: 'canary' }, 415, /content_type: expected a media type/],
    ['a type that is not read', { data: 'AAAA', content_type: 'image/png' }, 415, /not read/],
    ['a type that is not what it is', { text: 'x', content_type: 'application/pdf' }, 415, /pdf/],
  ])('refuses %s, without a word of it', async (_name, body, status, detail) => {
    const { total } = (await api.request('GET', '/documents?l=1')).body;
    const reply = await ingest(body);
    expect([reply.status, reply.body.detail]).toEqual([status, expect.stringMatching(detail)]);
    expect(reply.text).not.toContain('canary');
    expect((await api.request('GET', '/documents?l=1')).body.total).toBe(total);
  });

  test('takes a body far over the bound of other routes', async () => {
    const bytes = Buffer.from(freshText().padEnd(5_000_000, '0123456789\n'));
    const reply = await ingest({ data: bytes.toString('base64'), encoding: 'base64' });
    expect(await getDocument(reply)).toMatchObject({ bytes: bytes.length, sha256: sha256(bytes), format: 'text' });
    expect((await api.request('POST', '/memory/add', { body: { content: bytes.toString() } })).status).toBe(413);
  });

  test('needs a key that may write, and a body that it knows', async () => {
    const { secret } = api.engine.control.createKey({ tenantId: 'default', role: 'read', label: '' });
    for (const path of ['/memory/ingest', '/memory/ingest/url', '/documents/batch']) {
      expect((await api.request('POST', path, { body: {}, key: secret })).status).toBe(403);
      expect((await api.request('POST', path, { body: {}, key: null })).status).toBe(401);
      expect((await api.request('POST', path, { body: {}, headers: { 'content-encoding': 'gzip' } })).status).toBe(415);
      const unknown = await api.request('POST', path, { body: 'x', headers: { 'content-type': 'application/pdf' } });
      expect([unknown.status, unknown.body.code]).toEqual([415, 'unsupported']);
    }
    expect((await ingest({ text: 'x' }, '?wait=60001')).status).toBe(400);
    expect((await ingest({ text: 'x' }, '?user_id=ana')).status).toBe(400);
  });
});

describe('the same again', () => {
  test('is recognised by its bytes, for each user apart', async () => {
    const text = freshText();
    const first = await ingest({ text, user_id: 'ana' });
    const again = await ingest({ text, user_id: 'ana' });
    expect([again.status, again.body]).toEqual([
      200,
      expect.objectContaining({
        id: idOf(first),
        document_id: idOf(first),
        outcome: 'unchanged',
        job_id: first.body.job_id,
        // It is still to be read, so there is something to wait for.
        token: first.body.token,
      }),
    ]);
    const other = await ingest({ text, user_id: 'ben' });
    expect([other.status, idOf(other) === idOf(first)]).toEqual([202, false]);
  });

  test('by its external id is read again where its text changed', async () => {
    const send = (text: string) => ingest({ text, user_id: 'ana', external_id: 'wiki-2' });
    const text = freshText();
    const first = await send(text);
    expect((await send(text)).body['outcome']).toBe('unchanged');
    const changed = await send(freshText());
    expect([changed.status, idOf(changed)]).toEqual([202, idOf(first)]);
  });

  test('at the same time makes one document', async () => {
    const text = freshText();
    const replies = await Promise.all(Array.from({ length: 10 }, () => ingest({ text, user_id: 'ana' })));
    expect(new Set(replies.map(idOf)).size).toBe(1);
    expect(replies.filter(({ status }) => status === 202)).toHaveLength(1);
  });
});

describe('POST /memory/ingest/url', () => {
  const ingestUrl = (url: unknown, fields: object = {}) =>
    api.request('POST', '/memory/ingest/url', { body: { url, ...fields } });

  test('takes a page, whose fragment says nothing about it', async () => {
    const reply = await ingestUrl('https://EXAMPLE.com:443/a b?x=1#part', { user_id: 'ana', config: {} });
    expect(reply.status).toBe(202);
    const document = { source: 'url', url: 'https://example.com/a%20b?x=1', file_name: null, sha256: null };
    expect(await getDocument(reply)).toMatchObject({ ...document, user_id: 'ana' });
    const again = await ingestUrl('https://example.com/a%20b?x=1', { user_id: 'ana' });
    expect([again.status, idOf(again)]).toEqual([200, idOf(reply)]);
  });

  test.each<[unknown, RegExp]>([
    ['ftp://example.com/', /begins with http/],
    ['file:///etc/canary', /begins with http/],
    ['/canary', /begins with http/],
    ['javascript:canary', /begins with http/],
    ['https://', /begins with http/],
    ['https://canary:word@example.com/', /user name or password/],
    [`https://example.com/${'x'.repeat(2_048)}`, /at most 2048/],
    ['', /begins with http/],
    [1, /expected a string/],
    [undefined, /expected a string/],
  ])('refuses %j', async (url, detail) => {
    const reply = await ingestUrl(url);
    expect([reply.status, reply.body.detail]).toEqual([400, expect.stringMatching(detail)]);
    expect(reply.text).not.toContain('canary');
  });

  test('can be switched off', async () => {
    await using closed = await startApi({
      folder: tempFolder(),
      settings: { OM_EMBEDDINGS: 'none', OM_URL_INGEST: 'false' },
    });
    const page = { url: 'https://example.com/' };
    const refused = await closed.request('POST', '/memory/ingest/url', { body: page });
    expect([refused.status, refused.body.detail]).toEqual([403, expect.stringContaining('OM_URL_INGEST=true')]);
    const batch = await closed.request('POST', '/documents/batch', { body: { items: [page] } });
    expect(batch.body.results).toEqual([{ error: { code: 'forbidden', message: expect.any(String) as string } }]);
    const added = await closed.request('POST', '/memory/ingest', { body: { text: 'x' } });
    expect((await closed.request('PUT', `/documents/${idOf(added)}`, { body: page })).status).toBe(403);
  });
});

describe('POST /documents/batch', () => {
  const send = (items: unknown) => api.request('POST', '/documents/batch', { body: { items } });

  test('takes files and pages; a wrong item spares the rest', async () => {
    const text = freshText();
    const { status, body } = await send([
      { text, user_id: 'ana' },
      { data: 'canary!', content_type: 'pdf' },
      { url: 'https://example.com/batch' },
      { url: 'ftp://example.com/batch' },
      { text: 'x', content_type: 'application/pdf' },
      null,
      { text, user_id: 'ana' },
    ]);
    const added = (outcome: string) => ({
      document_id: expect.any(String) as string,
      job_id: expect.any(String) as string,
      state: 'queued',
      outcome,
    });
    const error = (code: string) => ({ error: { code, message: expect.any(String) as string } });
    expect([status, body]).toEqual([
      202,
      {
        results: [
          added('accepted'),
          error('invalid'),
          added('accepted'),
          error('invalid'),
          error('unsupported'),
          error('invalid'),
          added('unchanged'),
        ],
        accepted: 3,
        rejected: 4,
        token: expect.any(String),
      },
    ]);
    expect(JSON.stringify(body)).not.toContain('canary');
  });

  test('of nothing but wrong items leaves nothing to do; what is known and still to be read can be waited for', async () => {
    const wrong = await send([{}]);
    expect([wrong.status, wrong.body['rejected'], wrong.body.token]).toEqual([200, 1, null]);
    const text = freshText();
    const first = await send([{ text }]);
    expect((await send([{ text }])).body).toMatchObject({
      results: [{ outcome: 'unchanged' }],
      token: first.body.token,
    });
  });

  test('holds 1 to 100 items', async () => {
    const items = (count: number) => Array.from({ length: count }, () => ({ text: freshText() }));
    expect((await send(items(100))).body['accepted']).toBe(100);
    for (const body of [items(101), [], {}, undefined]) expect((await send(body)).status).toBe(400);
    const waiting = await api.request('POST', '/documents/batch?wait=5', { body: { items: items(1) } });
    expect([waiting.status, waiting.body.detail]).toEqual([400, expect.stringContaining('token')]);
  });
});

describe('a caller that waits', () => {
  let working: TestApi;
  beforeAll(async () => {
    working = await startApi({ folder: tempFolder(), workers: true, settings: { OM_VEC_DIM: '256' } });
  });
  afterAll(() => working.stop());
  const send = (
    body: object,
    { query = '', headers = {} }: { query?: string; headers?: Record<string, string> } = {},
  ) => working.request('POST', `/memory/ingest${query}`, { body, headers });

  test('gets the finished document, with what OpenMemory calls its parts', async () => {
    const text = '# Rollback\n\nRun the rollback job with the previous build number.\n';
    const { status, body } = await send({ data: text, content_type: 'md', user_id: 'ana' }, { query: '?wait=60000' });
    expect([status, body]).toEqual([
      200,
      expect.objectContaining({
        id: body['document_id'],
        outcome: 'accepted',
        state: 'ready',
        format: 'markdown',
        title: 'Rollback',
        root_memory_id: expect.any(String),
        chunks: 1,
        child_count: 1,
        total_tokens: body['tokens'],
        strategy: 'single',
        extraction: {
          content_type: 'markdown',
          char_count: body['characters'],
          estimated_tokens: body['tokens'],
          extraction_method: 'markdown',
        },
        receipt: { stored: 1, kept: 0, removed: 0 },
      }),
    ]);
  });

  test('may say so in a header', async () => {
    const reply = await send({ text: 'A text that is waited for.' }, { headers: { prefer: 'wait=60' } });
    expect([reply.status, reply.body.state]).toEqual([200, 'ready']);
  });

  test('is told why a document could not be read', async () => {
    const { status, body } = await send({ data: 'JVBERi0xLjcK', content_type: 'pdf' }, { query: '?wait=60000' });
    expect([status, body.state, body['error']]).toEqual([
      200,
      'failed',
      { code: 'corrupt_document', message: expect.any(String) },
    ]);
  });

  test('finds it by a query with its token, and sees where it stands', async () => {
    const text = '# Harbour\n\n## Opening hours\n\nThe lighthouse opens at nine in the morning.\n';
    const { body: added } = await send({
      text,
      content_type: 'text/markdown',
      user_id: 'tom',
      file_name: 'harbour.md',
    });
    await (await working.engine.tenant('default')).waitFor(added.token, 120_000);
    const find = (filters: object) =>
      working.request('POST', '/memory/query', {
        body: { query: 'when does the lighthouse open?', user_id: 'tom', filters, token: added.token, min_score: 0 },
      });
    const documents = [added['document_id']];
    const { matches, ...rest } = (await find({ documents })).body;
    expect(rest['token_satisfied']).toBe(true);
    const places = (matches as unknown as readonly { document: { chunk: number | null } }[]).map(
      ({ document }) => document,
    );
    // The root memory, whose gist has the same words, gives way to the chunk.
    expect(places).toEqual([
      {
        document_id: added['document_id'],
        title: 'Harbour',
        file_name: 'harbour.md',
        url: null,
        format: 'markdown',
        sha256: sha256(text),
        chunk: 0,
        chunks: 1,
        start_offset: 0,
        end_offset: expect.any(Number),
        page_from: null,
        page_to: null,
        heading_path: expect.any(Array),
        ingested_at: expect.any(Number),
      },
    ]);
    expect((await find({ documents: ['absent'] })).body.matches).toEqual([]);
  });
});
