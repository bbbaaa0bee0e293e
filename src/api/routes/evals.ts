import { takeTokens } from '../take-tokens.ts';
import { type JsonReply, MAX_REPLY_BYTES, sendInPieces } from '../json-reply.ts';
import { route, type Route, type TenantCall } from '../route.ts';
import {
  evalDeleted,
  evalList,
  evalRunReply,
  evalRuns,
  evalRunsQuery,
  evalSet,
  evalSummary,
  storedEvalSet,
} from '../schemas/evals.ts';
import { noQuery } from '../schemas/values.ts';
import { clientGone } from '../wait-for-writes.ts';
import { evalItem, evalOutcomeItem, evalRunItem, evalSummaryItem, toEvalSet } from '../wire/evals.ts';

const NAME = { name: { description: 'Name of the set.', example: 'travel' } } as const;
const UNKNOWN = { not_found: 'No set has this name.' } as const;
const EXAMPLE = {
  name: 'travel',
  guard: true,
  items: [
    { query: 'When is the flight?', user_id: 'ana', expected: ['june 3'] },
    { query: 'What is the code of the safe?', user_id: 'ana', expected: [] },
  ],
};

/** Routes of evaluation sets: questions with known answers, which are asked before and after a change. */
export const evalRoutes: readonly Route[] = [
  route({
    method: 'post',
    path: '/evals',
    name: 'putEval',
    access: 'admin',
    summary: 'Stores an evaluation set in place of the one of the same name',
    description:
      'The runs of a set that is replaced stay. `DELETE /users/{id}/memories` also deletes the items with that ' +
      '`user_id`.',
    query: noQuery,
    body: { json: evalSet, example: EXAMPLE },
    errors: {
      conflict:
        'The tenant would have more than 100 sets, sets of more than 64 MiB together, or more than 1,000 items in ' +
        'its guarded sets together.',
      unprocessable: "The tenant's privacy policy refuses a text of an item.",
    },
    replies: {
      200: {
        description: 'The set as `GET /evals` lists it.',
        json: evalSummary,
        example: { name: 'travel', guard: true, items: 2, updated_at: 1795265978965, last_run: null },
      },
    },
    async handle({ tenant, readBody, send }) {
      send(200, evalSummaryItem(await tenant.putEval(toEvalSet(await readBody()))));
    },
  }),
  route({
    method: 'get',
    path: '/evals',
    name: 'listEvals',
    access: 'admin',
    summary: 'Lists the evaluation sets, each with its last run',
    query: noQuery,
    replies: {
      200: {
        description: 'The sets, by name.',
        json: evalList,
        example: { items: [{ name: 'travel', guard: true, items: 2, updated_at: 1795265978965, last_run: null }] },
      },
    },
    async handle({ tenant, send }) {
      send(200, { items: (await tenant.listEvals()).map(evalSummaryItem) });
    },
  }),
  route({
    method: 'get',
    path: '/evals/:name',
    name: 'getEval',
    access: 'admin',
    alsoReads: true,
    summary: 'Shows an evaluation set with its items',
    params: NAME,
    query: noQuery,
    errors: UNKNOWN,
    replies: { 200: { description: 'The set.', json: storedEvalSet, example: EXAMPLE } },
    async handle(call) {
      const { name, guard, items } = await call.tenant.getEval(call.params.name);
      await sendItems(call, { name, guard }, items, evalItem);
    },
  }),
  route({
    method: 'delete',
    path: '/evals/:name',
    name: 'deleteEval',
    access: 'admin',
    summary: 'Deletes an evaluation set and its runs',
    params: NAME,
    query: noQuery,
    errors: UNKNOWN,
    replies: { 200: { description: 'The set is deleted.', json: evalDeleted, example: { deleted: true } } },
    async handle({ tenant, params, send }) {
      await tenant.deleteEval(params.name);
      send(200, { deleted: true });
    },
  }),
  route({
    method: 'post',
    path: '/evals/:name/run',
    name: 'runEval',
    access: 'admin',
    limited: ['queries'],
    summary: 'Asks all questions of a set, and keeps the measures as a run',
    description:
      'The questions are answered like any query of the tenant, one after the other, but they reinforce no memory ' +
      'and are not kept in the recall log. The reply comes when all are answered. If the client disconnects before, ' +
      'the run ends and is not kept. Each question counts as a query in the rate limit `queries` of the key.',
    params: NAME,
    query: noQuery,
    errors: UNKNOWN,
    replies: {
      200: { description: 'The run, and the result of each item.', json: evalRunReply },
    },
    async handle(call) {
      const { tenant, params, response } = call;
      // The request has paid for one question. A set has none after the user of all its items was erased.
      const { items = 0 } = (await tenant.listEvals()).find(({ name }) => name === params.name) ?? {};
      takeTokens(call, 'queries', Math.max(0, items - 1));
      const { run, outcomes } = await tenant.runEval(params.name, clientGone(response));
      await sendItems(call, { run: evalRunItem(run) }, outcomes, evalOutcomeItem);
    },
  }),
  route({
    method: 'get',
    path: '/evals/:name/runs',
    name: 'listEvalRuns',
    access: 'admin',
    summary: 'Lists the runs of a set, newest first, and what changed before each',
    description: 'The newest 200 runs of a set are kept.',
    params: NAME,
    query: evalRunsQuery,
    errors: UNKNOWN,
    replies: { 200: { description: 'The runs.', json: evalRuns } },
    async handle({ tenant, params, query: { limit }, send }) {
      send(200, { items: (await tenant.listEvalRuns(params.name, limit)).map(evalRunItem) });
    },
  }),
];

/**
 * Answers 200 with an object whose `items` are made and sent one by one, as a set may have megabytes. They all fit into
 * a reply, since a set has at most 4 MiB.
 * @param head fields of the reply before its `items`
 */
async function sendItems<Item>(
  call: TenantCall,
  head: object,
  items: readonly Item[],
  toJson: (item: Item) => unknown,
): Promise<void> {
  const make = async (reply: JsonReply) => {
    reply.add(`${JSON.stringify(head).slice(0, -1)},"items":`);
    await reply.addList([items], { toJson });
    await reply.end('}');
  };
  await sendInPieces(call, make, MAX_REPLY_BYTES);
}
