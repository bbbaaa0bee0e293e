import { createHash } from 'node:crypto';
import type { Request, Response } from 'express';
import { z } from 'zod';
import {
  type AddReply,
  EngineError,
  type IdempotencyClaim,
  type NewMemory,
  type NotedItem,
  takeTurn,
} from '../../engine/index.ts';
import { isErrorCode, logFailure, toEngineError } from '../http-errors.ts';
import { type JsonBody, mediaTypeOf, readJson } from '../read-body.ts';
import { takeTokens } from '../take-tokens.ts';
import { localsOf } from '../reply.ts';
import { route, type Route, type TenantCall } from '../route.ts';
import { idempotencyKeySchema } from '../schemas/headers.ts';
import { addSchema, batchSchema, newMemorySchema } from '../schemas/memories.ts';
import {
  acceptedMemory,
  batchReply,
  batchReplyLine,
  duplicateMemory,
  finishedMemory,
} from '../schemas/memory-replies.ts';
import { parse } from '../schemas/parse.ts';
import { batchQuery, waitQuery } from '../schemas/values.ts';
import { readFinished, waitMsOf } from '../wait-for-writes.ts';
import { acceptedItem, duplicateItem, finishedItem, outcomeItem, screenedItem, toNewMemory } from '../wire/memories.ts';
import { addLines } from './add-lines.ts';
import { isItemError, itemError, notedItems, parseItem, wantsLines } from './batch-items.ts';
import { warningsAbout } from './warnings.ts';

/** Fields that OpenMemory's Python client sends with every add and that are ignored, each with the warning about it. */
const MEANINGLESS = {
  salience: 'not read; the initial salience is `importance`',
  decay_lambda: 'not read; the decay follows from the sector, or from OM_DECAY_LAMBDA',
};

const CONFLICT =
  'The `external_id` belongs to another text, the memory that `supersedes` names has another successor, or the ' +
  'memory that the idempotency key made was deleted.';

const UNPROCESSABLE =
  "The idempotency key came with another body before, or the tenant's privacy policy refuses the text.";

const REPLY_LINES = {
  type: 'application/x-ndjson',
  schema: batchReplyLine,
  example: {
    line: 1,
    id: '01a1fe30-e2c8-70e1-be9e-3f553ff37290',
    state: 'queued',
    job_id: '01a1fe30-e2c8-70e1-be9e-4242feb2d3c7',
  },
};
const BATCH_EXAMPLE = {
  results: [
    { id: '01a1fe30-e2be-771b-bce7-9104d9f6a9e5', state: 'queued', job_id: '01a1fe30-e2be-771b-bce7-975c2c73a63c' },
    {
      id: '01a1fe30-e2be-771b-bce7-9104d9f6a9e5',
      primary_sector: 'semantic',
      sectors: ['semantic'],
      deduplicated: true,
      state: 'queued',
    },
  ],
  accepted: 2,
  rejected: 0,
  token: '1fbb38ac.3.3',
};

export const addRoutes: readonly Route[] = [
  addRoute('/memory/add', { name: 'addMemory', summary: 'Stores one memory' }),
  addRoute('/memories', {
    name: 'addMemoryAgain',
    summary: "Stores one memory: OpenMemory's second path of POST /memory/add",
  }),
  route({
    method: 'post',
    path: '/memory/add/batch',
    name: 'addMemories',
    access: 'add',
    forBoundKeys: true,
    limited: ['batch_items'],
    summary: 'Stores many memories',
    description:
      'The jobs of these memories run after the jobs of single adds. An invalid item does not affect the others; a ' +
      'body that is not a list of items is refused as a whole. The request does not wait for the jobs: use the token.' +
      '\n\n' +
      'With JSON, all valid items are stored in one transaction, or in several if they make much work. With NDJSON ' +
      'the body has one item per line, any number of them, and they are stored as they arrive. With ' +
      '`accept: application/x-ndjson` the server sends each result while you are still sending, so read results ' +
      'while you send. `Idempotency-Key` works with JSON only: ' +
      'in NDJSON, give each line an `external_id`. The last line of the reply is the summary. If it has an `error`, ' +
      'the upload ended early, and every line that has a result with an `id` is stored.',
    query: batchQuery,
    headers: ['idempotency-key'],
    body: {
      json: batchSchema,
      example: {
        items: [
          { content: 'Ben prefers tabs to spaces.', user_id: 'ben' },
          { content: 'Ben prefers tabs to spaces.', user_id: 'ben' },
        ],
      },
      media: [
        {
          type: 'application/x-ndjson',
          schema: newMemorySchema,
          example: { content: 'Ben prefers tabs to spaces.', user_id: 'ben' },
        },
      ],
    },
    replies: {
      202: {
        description: 'The result of each item. An NDJSON upload always has this status.',
        json: batchReply,
        example: BATCH_EXAMPLE,
        media: [REPLY_LINES],
        headers: ['idempotent-replayed'],
      },
      200: {
        description: 'No job was made: every item was a duplicate or was refused.',
        json: batchReply,
        example: { ...BATCH_EXAMPLE, results: [BATCH_EXAMPLE.results[1]], accepted: 1, token: null },
        media: [REPLY_LINES],
        headers: ['idempotent-replayed'],
      },
    },
    errors: {
      conflict: 'A memory that the idempotency key made was deleted.',
      unprocessable: 'The idempotency key came with another body before.',
    },
    handle: async (call) => {
      const { tenant, request, response, query, send } = call;
      if (mediaTypeOf(request) === 'application/x-ndjson') return addLines(call, { withReceipt: query.receipt });
      const body = await readJson(request);
      const items: ReturnType<typeof parseItem>[] = [];
      for (const item of parse(batchSchema, body.value).items) {
        items.push(parseItem(item));
        await takeTurn();
      }
      takeTokens(call, 'batch_items', items.length);
      const good = items.filter((item): item is NewMemory => !isItemError(item));
      const idempotency = claimOf(request, '/memory/add/batch', body);
      const reply = await tenant.addMemories(good, { bulk: true, idempotency });
      markReplay(response, reply);
      const outcomes = reply.outcomes.values();
      const results = items.map((item) => (isItemError(item) ? item : outcomeItem(outcomes.next().value!)));
      const accepted = results.filter((result) => !isItemError(result)).length;
      const counts = {
        accepted,
        rejected: results.length - accepted,
        token: reply.token,
        ...(query.receipt ? await noteWhole(call, notedItems(items, results)) : {}),
      };
      const status = reply.token === null ? 200 : 202;
      if (!wantsLines(request)) return send(status, { results, ...counts });
      response.statusCode = status;
      response.setHeader('content-type', 'application/x-ndjson; charset=utf-8');
      response.end([...results, counts].map((line) => `${JSON.stringify(line)}\n`).join(''));
    },
  }),
];

/**
 * Keeps the receipt of a batch that is stored, and returns the fields of the reply that name it. An error of the
 * receipt is logged and becomes a field, since as the answer it would say that nothing was stored.
 */
async function noteWhole({ api, tenant, response }: TenantCall, items: readonly NotedItem[]) {
  try {
    return { receipt_id: await tenant.noteBatch({ items, first: 1, isLast: true }) };
  } catch (thrown) {
    logFailure(api.engine.logger, toEngineError(thrown), localsOf(response).requestId);
    return { receipt_error: itemError(thrown).error };
  }
}

/**
 * Declares a route that adds one memory.
 * @param path `/memory/add`, or `/memories`, which OpenMemory's clients use. An idempotency key is valid for both paths
 *   together.
 */
function addRoute(path: string, { name, summary }: { readonly name: string; readonly summary: string }): Route {
  return route({
    method: 'post',
    path,
    name,
    access: 'add',
    forBoundKeys: true,
    limited: ['adds'],
    summary,
    description:
      'A 202 means that the memory, its words and its job are on disk, and that queries find it by its words. ' +
      'Sectors, vector and waypoint follow in the background; with `wait` the reply comes when they exist.\n\n' +
      'An exact duplicate is not stored again: the existing memory is reinforced, and the reply names it. With ' +
      '`on_duplicate: keep` it is stored all the same.',
    query: waitQuery,
    headers: ['idempotency-key', 'prefer'],
    body: {
      json: addSchema,
      example: {
        content: 'Deploys to staging happen every Tuesday after the stand-up.',
        user_id: 'ana',
        tags: ['deploy'],
        metadata: { team: 'platform', build: 41 },
      },
    },
    replies: {
      202: {
        description: 'The memory is stored; its job is queued.',
        json: acceptedMemory,
        headers: ['location', 'idempotent-replayed'],
      },
      200: {
        description: 'The memory is stored and its job ended in time, or it is a duplicate of an existing memory.',
        json: z.union([finishedMemory, duplicateMemory]),
        headers: ['location', 'idempotent-replayed'],
      },
    },
    errors: {
      conflict: CONFLICT,
      not_found: 'No memory of this user has the id in `supersedes`.',
      too_large: 'The content is over 256 KiB: send it as a document.',
      unprocessable: UNPROCESSABLE,
    },
    async handle(call) {
      const { tenant, request, response, send } = call;
      const waitMs = waitMsOf(call, call.query.wait);
      const body = await readJson(request);
      const added = parse(addSchema, body.value);
      const item = toNewMemory(added);
      const warnings = warningsAbout(added, MEANINGLESS);
      const reply = await tenant.addMemories([item], { idempotency: claimOf(request, '/memory/add', body) });
      markReplay(response, reply);
      const outcome = reply.outcomes[0]!;
      if (outcome.kind === 'rejected') {
        const { code, message } = outcome.error;
        throw new EngineError(isErrorCode(code) ? code : 'invalid', message);
      }
      if (outcome.kind === 'duplicate') return send(200, { ...duplicateItem(outcome), ...warnings });
      localsOf(response).jobId = outcome.jobId;
      response.setHeader('location', `/jobs/${outcome.jobId}`);
      const finished = await readFinished(call, { token: reply.token, timeoutMs: waitMs }, async () => {
        const memory = await tenant.getMemory(outcome.id);
        const error = memory.state === 'failed' ? (await tenant.getJob(outcome.jobId)).error : null;
        return { ...finishedItem(memory), ...screenedItem(outcome), ...(error === null ? {} : { error }) };
      });
      if (finished !== undefined) return send(200, { ...finished, ...warnings });
      send(202, { ...acceptedItem(outcome, reply), ...warnings });
    },
  });
}

function claimOf(request: Request, path: string, body: JsonBody): IdempotencyClaim | undefined {
  const header = request.headers['idempotency-key'];
  if (header === undefined) return undefined;
  return {
    key: parse(idempotencyKeySchema, header),
    route: path,
    bodyHash: createHash('sha256').update(body.bytes).digest(),
  };
}

function markReplay(response: Response, { replayed }: AddReply): void {
  if (replayed) response.setHeader('idempotent-replayed', 'true');
}
