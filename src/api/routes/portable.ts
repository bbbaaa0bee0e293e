import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { EngineError, type ExportOptions, type MemoryFilter, type Metadata } from '../../engine/index.ts';
import { acceptsGzip } from '../accepts-gzip.ts';
import { mediaTypeOf, readJson } from '../read-body.ts';
import { takeReplyPlace } from '../reply-places.ts';
import { awaitDrain } from '../await-drain.ts';
import { route, type Route, type TenantCall } from '../route.ts';
import { exportedLine, importReply, portableLine } from '../schemas/portable.ts';
import { exportQuery, type ExportQuery, importQuery, namesOf } from '../schemas/portable-queries.ts';
import { configurationOf } from './configuration-lines.ts';
import { importLines } from './import-lines.ts';

const NDJSON = 'application/x-ndjson';
/**
 * Memory that an export takes while its client reads it, in bytes: the pieces that are being read, compressed and sent.
 */
const EXPORT_BYTES = 4 * 1024 * 1024;
const EXAMPLE_LINES = [
  { type: 'cairn.export', version: 1 },
  {
    type: 'memory',
    id: '01a1fe30-e25b-7576-a0c2-3c4e3646bd72',
    user_id: 'ana',
    content: 'Deploys to staging happen every Tuesday.',
  },
  { type: 'end' },
];
const EXAMPLE = EXAMPLE_LINES[1];

/** Routes of the export and import of a tenant's data. */
export const portableRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/export',
    name: 'exportData',
    access: 'admin',
    summary: 'Exports everything but keys and logs of requests as lines of JSON, in plain text',
    description:
      'The first line has the type `cairn.export`. The last line has the type `end`, with counts and the SHA-256 of ' +
      'all lines before it: an export without this line was cut off. Memories are as they were when the export ' +
      'began; what is erased meanwhile is left out, and so is a document that is read anew meanwhile. Keys, jobs and ' +
      'logs of requests are never exported. The last line counts what else was left out: documents that were not ' +
      'read yet, webhooks, memories that a consolidation gathered. With `Accept-Encoding: gzip` the reply is ' +
      'compressed. The filters select memories, ' +
      'of any status. The chunks of a document are exported if the filters select the memory of the whole document, ' +
      'a link if they select both of its memories. Session logs are left out if there is a filter other than ' +
      '`user_id` and `session_id`, standing queries if there is one other than `user_id`, settings and evaluation ' +
      'sets if there is any.',
    query: exportQuery,
    replies: { 200: { description: 'The lines.', media: [{ type: NDJSON, schema: exportedLine, example: EXAMPLE }] } },
    async handle(call) {
      const { tenant, query } = call;
      const options = exportOptions(call);
      await takeReplyPlace(call, EXPORT_BYTES);
      await tenant.recordAction('export', { ...(query.vectors ? { vectors: 1 } : {}), by: Object.keys(options.asked) });
      await sendLines(call, tenant.exportLines(options));
    },
  }),
  route({
    method: 'post',
    path: '/import',
    name: 'importData',
    access: 'admin',
    limited: ['upload_bytes'],
    summary: 'Imports the lines of an export, exactly: ids, times, versions, links and salience',
    description:
      'The body is read and answered line by line, whatever its length. An import only adds, and changes nothing ' +
      'that is stored. A line that is stored already is passed over, so an import that was broken off can be sent ' +
      'again. What was changed here since the export stays as it is, and is counted in `kept`. A line with the id of ' +
      'something else that is stored is refused with `conflict`. A memory needs only `id` and `content`; one without ' +
      '`state` is classified and linked like a new memory. Settings and evaluation sets are stored only if the ' +
      'tenant has none of the same name. Items of a session log are appended to those that the log has.',
    query: importQuery,
    body: {
      json: portableLine,
      example: EXAMPLE_LINES[1] as never,
      media: [{ type: NDJSON, schema: portableLine, example: EXAMPLE }],
    },
    replies: {
      200: {
        description:
          'Lines about what was refused and how far the import is, and at the end a summary. An `error` in the ' +
          'summary means that the import ended early; all lines that were answered before are stored.',
        media: [
          {
            type: NDJSON,
            schema: importReply,
            example: {
              done: true,
              dry_run: false,
              complete: true,
              checksum: 'match',
              stored: { memory: 1 },
              known: {},
              kept: {},
              refused: {},
              unknown_fields: {},
            },
          },
        ],
      },
    },
    async handle(call) {
      const isOneLine = mediaTypeOf(call.request) === 'application/json';
      if (!isOneLine && mediaTypeOf(call.request) !== NDJSON)
        throw new EngineError('unsupported', `expected a body of type ${NDJSON}, or one line as application/json`);
      const { dry_run: dryRun, from_line: fromLine, map_user: mapped = [] } = call.query;
      const users = new Map(mapped.map(namesOf));
      const line = isOneLine ? Buffer.from(JSON.stringify((await readJson(call.request)).value)) : null;
      const body = line === null ? call.request : Readable.from([line]);
      await importLines(call, body, { dryRun, fromLine, users });
    },
  }),
];

function exportOptions({ tenant, query }: { tenant: TenantCall['tenant']; query: ExportQuery }) {
  const { vectors, ...asked } = query;
  const filter: MemoryFilter = {
    userIds: asked.user_id === undefined ? undefined : [asked.user_id],
    sessionIds: asked.session_id === undefined ? undefined : [asked.session_id],
    tags: asked.tags,
    types: asked.types,
    eventFrom: asked.from,
    eventTo: asked.to,
  };
  const shown = Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined)) as Metadata;
  const { user_id: userId, ...others } = shown;
  const isWhole = Object.keys(shown).length === 0;
  const configuration =
    Object.keys(others).length > 0 ? undefined : configurationOf(tenant, { isWhole, userId: userId as string });
  return { filter, vectors, asked: shown, configuration } satisfies ExportOptions;
}

/**
 * Sends lines while they are made, compressed if the client accepts gzip. If the client stops reading, its connection
 * is closed.
 */
async function sendLines({ api, request, response }: TenantCall, lines: AsyncIterable<string>): Promise<void> {
  const pieces = lines[Symbol.asyncIterator]();
  // The first piece is read before the status is sent, as a malformed filter fails here.
  const first = await pieces.next();
  const isZipped = acceptsGzip(request);
  response.setHeader('vary', 'accept-encoding');
  if (isZipped) response.setHeader('content-encoding', 'gzip');
  response.writeHead(200, { 'content-type': `${NDJSON}; charset=utf-8` });
  const texts = (async function* () {
    yield first.value as string;
    yield* { [Symbol.asyncIterator]: () => pieces };
  })();
  for await (const piece of isZipped ? zipped(texts) : texts) {
    if (response.destroyed) return;
    if (!response.write(piece)) await awaitDrain(response, api.engine.config.OM_READER_TIMEOUT_MS);
  }
  response.end();
}

function zipped(texts: AsyncIterable<string>): AsyncIterable<Buffer> {
  const gzip = createGzip();
  // An error ends the compressed stream, too, where it is thrown to the reader.
  pipeline(Readable.from(texts), gzip).catch(() => {});
  return gzip;
}
