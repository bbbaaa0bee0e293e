import {
  jsonOf,
  JsonText,
  type LogItem,
  type LogPlace,
  type LogReceipt,
  takeTurn,
  type Tenant,
} from '../../engine/index.ts';
import { sendObject } from '../json-reply.ts';
import { takePlaceOfTexts, writePlaces } from '../reply-places.ts';
import { route, type Route } from '../route.ts';
import { parse } from '../schemas/parse.ts';
import {
  appendSchema,
  changedLogReply,
  clearedReply,
  logOwnerQuery,
  logQuery,
  logReply,
  poppedReply,
  popSchema,
  replaceSchema,
  sessionIdSchema,
} from '../schemas/session-logs.ts';

/** Estimated memory of a page of a log, in bytes: its items have 1 MiB, and texts take up to two bytes a character. */
const PAGE_BYTES = 2 * 1024 * 1024;
const SESSION = { description: 'The `session_id` of the session.', example: 'trip-2027' } as const;
const OTHER_TOTAL = 'The log has another number of items than `expected_total`.';
const CHANGED = {
  200: { description: 'Where the items were written, and how many items the log has now.', json: changedLogReply },
} as const;
const REFUSED = "The tenant's privacy policy refuses a text of an item.";

/** Routes of session logs, in which agents keep the items of a conversation word for word and in order. */
export const sessionLogRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/sessions/:id/log',
    name: 'readLog',
    access: 'read',
    forBoundKeys: true,
    summary: 'Reads the newest items of a session log, in their order',
    description: 'A session without a log has no items. Follow `next` to older items.',
    params: { id: SESSION },
    query: logQuery,
    replies: { 200: { description: 'The items.', json: logReply } },
    async handle(call) {
      const { tenant, params, query } = call;
      const { limit, before } = query;
      const { items, total, next } = await tenant.readLog(placeOf(params, query), { limit, before });
      const page = { items: items.map(shownItem), total, ...(next === null ? {} : { next }) };
      await sendObject(call, page, PAGE_BYTES);
    },
  }),
  route({
    method: 'post',
    path: '/sessions/:id/log',
    name: 'appendToLog',
    access: 'write',
    forBoundKeys: true,
    limited: ['adds'],
    summary: 'Appends items to a session log, all or none',
    description:
      'Items are any JSON values and come back as they were, equal ones too. They are not searched: to have a text ' +
      'remembered, add it as a memory. A request has at most 1 MiB, a log at most 100,000 items.',
    params: { id: SESSION },
    body: {
      json: appendSchema,
      example: { user_id: 'ana', items: [{ role: 'user', content: 'Is noon fine?' }], operation_id: 'turn-17' },
    },
    replies: CHANGED,
    errors: { conflict: `The \`operation_id\` stands for another change. ${OTHER_TOTAL}`, unprocessable: REFUSED },
    async handle({ tenant, params, readBody, send }) {
      const body = await readBody();
      await takeTurn();
      const { items, operation_id: operationId, expected_total: ifTotal } = body;
      const change = { items, operationId: operationId ?? undefined, ifTotal: ifTotal ?? undefined };
      send(200, changedLog(await tenant.changeLog(placeOf(params, body), change)));
    },
  }),
  route({
    method: 'post',
    path: '/sessions/:id/log/replace',
    name: 'replaceEndOfLog',
    access: 'write',
    forBoundKeys: true,
    limited: ['adds'],
    summary: 'Replaces the end of a session log in one step',
    description:
      'At most 1,000 items of together 8 MiB are replaced: all from the position `from` on, or exactly the ' +
      '`expected_suffix`.',
    params: { id: SESSION },
    body: {
      json: replaceSchema,
      example: { user_id: 'ana', from: 4, items: [{ role: 'user', content: 'Is one fine?' }], operation_id: 'edit-3' },
    },
    replies: CHANGED,
    errors: {
      conflict: `The log does not end in the \`expected_suffix\`, or the \`operation_id\` stands for another change. ${
        OTHER_TOTAL
      }`,
      unprocessable: REFUSED,
    },
    async handle({ tenant, params, readBody, send }) {
      const body = await readBody();
      await takeTurn();
      const { items, from, expected_suffix: expected, operation_id: operationId, expected_total: ifTotal } = body;
      const change = {
        items,
        replaces: expected == null ? { from: from ?? 0 } : { expected },
        operationId: operationId ?? undefined,
        ifTotal: ifTotal ?? undefined,
      };
      send(200, changedLog(await tenant.changeLog(placeOf(params, body), change)));
    },
  }),
  route({
    method: 'post',
    path: '/sessions/:id/log/pop',
    name: 'popFromLog',
    access: 'write',
    forBoundKeys: true,
    limited: ['adds'],
    alsoReads: true,
    summary: 'Takes the newest item off a session log and returns it',
    description: 'With `expected_total` a retry takes no second item.',
    params: { id: SESSION },
    body: { json: popSchema, example: { user_id: 'ana', expected_total: 2 }, optional: true },
    replies: { 200: { description: 'The item, and how many are left.', json: poppedReply } },
    errors: { conflict: OTHER_TOTAL },
    async handle(call) {
      const { tenant, params, readBody } = call;
      const body = await readBody();
      const place = placeOf(params, body);
      // The item is gone once it is popped, so the memory of the reply is reserved before.
      await takePlaceOfTexts(call, await lengthOfNewest(tenant, place), writePlaces);
      const { popped, total } = await tenant.popLog(place, { ifTotal: body.expected_total ?? undefined });
      const reply = { popped: popped && shownItem(popped), total };
      // From here on it must not be refused, even if another item is the newest by now, for which nothing was reserved.
      await sendObject(call, reply, null);
    },
  }),
  route({
    method: 'delete',
    path: '/sessions/:id/log',
    name: 'clearLog',
    access: 'write',
    forBoundKeys: true,
    limited: ['adds'],
    summary: 'Erases all items of a session log',
    params: { id: SESSION },
    query: logOwnerQuery,
    replies: { 200: { description: 'How many items were erased.', json: clearedReply } },
    async handle({ tenant, params, query, send }) {
      send(200, { ok: true, removed: await tenant.clearLog(placeOf(params, query)) });
    },
  }),
];

function placeOf(
  { id }: { readonly id: string },
  { user_id }: { readonly user_id?: string | null | undefined },
): LogPlace {
  return { userId: user_id ?? '', sessionId: parse(sessionIdSchema, id) };
}

/** Returns the length of the newest item of a log as JSON, in UTF-16 code units; 0 if it is short or there is none. */
async function lengthOfNewest(tenant: Tenant, place: LogPlace): Promise<number> {
  const { items } = await tenant.readLog(place, { limit: 1 });
  const json = items[0] && jsonOf(items[0], 'item');
  return json instanceof JsonText ? json.text.length : 0;
}

const shownItem = (item: LogItem) => ({
  position: item.position,
  item: jsonOf(item, 'item'),
  created_at: item.createdAt,
  written_by: item.writtenBy,
});

const changedLog = ({ first, removed, total, replayed }: LogReceipt) => ({ position: first, removed, total, replayed });
