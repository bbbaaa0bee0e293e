import { takeTokens } from '../take-tokens.ts';
import { route, type Route } from '../route.ts';
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
import { evalRunItem, evalRunReplyItem, evalSetItem, evalSummaryItem, toEvalSet } from '../wire/evals.ts';

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
    description: 'Runs of the replaced set stay. Items about a user are erased with the memories of the user.',
    query: noQuery,
    body: { json: evalSet, example: EXAMPLE },
    errors: {
      conflict: 'The tenant has too many sets, or too many guarded items.',
      unprocessable: "The tenant's privacy settings refuse what an item holds.",
    },
    replies: {
      200: {
        description: 'The set as it is listed.',
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
    summary: 'Shows an evaluation set with its items',
    params: NAME,
    query: noQuery,
    errors: UNKNOWN,
    replies: { 200: { description: 'The set.', json: storedEvalSet, example: EXAMPLE } },
    async handle({ tenant, params, send }) {
      send(200, evalSetItem(await tenant.getEval(params.name)));
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
    summary: 'Asks all questions of a set, and keeps the numbers',
    description:
      'The questions go the way of any query of the tenant, one after the other, and reinforce nothing. The reply ' +
      'comes when all are answered; a client that leaves ends the run, which is then not kept. Each ' +
      'question takes one of the `queries` of the key.',
    params: NAME,
    query: noQuery,
    errors: UNKNOWN,
    replies: {
      200: { description: 'The run, and what came of each item.', json: evalRunReply },
    },
    async handle(call) {
      const { tenant, params, response, send } = call;
      // The request has paid for one question.
      takeTokens(call, 'queries', (await tenant.getEval(params.name)).items.length - 1);
      const { run, outcomes } = await tenant.runEval(params.name, clientGone(response));
      send(200, evalRunReplyItem(run, outcomes));
    },
  }),
  route({
    method: 'get',
    path: '/evals/:name/runs',
    name: 'listEvalRuns',
    access: 'admin',
    summary: 'Lists the runs of a set, newest first, and what changed before each',
    description: 'The last 200 runs are kept.',
    params: NAME,
    query: evalRunsQuery,
    errors: UNKNOWN,
    replies: { 200: { description: 'The runs.', json: evalRuns } },
    async handle({ tenant, params, query: { limit }, send }) {
      send(200, { items: (await tenant.listEvalRuns(params.name, limit)).map(evalRunItem) });
    },
  }),
];
