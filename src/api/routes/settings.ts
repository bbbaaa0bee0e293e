import { requestCaller } from '../control-turn.ts';
import { route, type Route } from '../route.ts';
import { takeForGuards } from '../take-tokens.ts';
import { forceQuery } from '../schemas/evals.ts';
import { retrievalReply, retrievalSchema } from '../schemas/query.ts';
import { privacyReply, privacySchema } from '../schemas/privacy.ts';
import { noQuery } from '../schemas/values.ts';
import { clientGone } from '../wait-for-writes.ts';
import { retrievalItem, toRetrievalOptions } from '../wire/query.ts';

/** Routes of a tenant's settings: its defaults for queries, and its privacy policy. */
export const settingsRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/settings/retrieval',
    name: 'getRetrievalDefaults',
    access: 'read',
    forBoundKeys: true,
    summary: "Shows this tenant's defaults for its queries",
    query: noQuery,
    replies: {
      200: { description: 'Only the defaults that were set; an empty object at first.', json: retrievalReply },
    },
    async handle({ tenant, send }) {
      send(200, retrievalItem(await tenant.retrievalDefaults()));
    },
  }),
  route({
    method: 'put',
    path: '/settings/retrieval',
    name: 'putRetrievalDefaults',
    access: 'admin',
    summary: "Replaces all of this tenant's defaults for its queries, from the next query on",
    description:
      "The fields of a query have priority over its tenant's defaults, these over the settings of the service, and " +
      "those over the built-in defaults. `weights`, `column_weights` and `penalties` are merged by name; a tenant's " +
      '`weights` may name weights of all profiles. Before the change, guarded evaluation sets are run under the ' +
      'present and the new defaults, unless `force=true`.',
    query: forceQuery,
    body: { json: retrievalSchema, example: { profile: 'activation', weights: { recency: 0.1 }, max_hops: 1 } },
    errors: {
      conflict:
        'The new defaults lower a measure of a guarded evaluation set; `detail` has the numbers, and nothing is ' +
        'changed.',
    },
    replies: { 200: { description: 'The defaults that were set.', json: retrievalReply } },
    async handle(call) {
      const { tenant, query, readBody, response, send } = call;
      const { force } = query;
      const options = toRetrievalOptions(await readBody());
      if (force !== 'true') await takeForGuards(call);
      const how = { force: force === 'true', signal: clientGone(response), caller: requestCaller(call) };
      await tenant.putRetrievalDefaults(options, how);
      send(200, retrievalItem(options));
    },
  }),
  route({
    method: 'get',
    path: '/settings/privacy',
    name: 'getPrivacyPolicy',
    access: 'read',
    summary: "Shows this tenant's privacy policy: what becomes of secrets and personal data in its texts",
    query: noQuery,
    replies: { 200: { description: "The tenant's own policy, or that of `OM_PII`.", json: privacyReply } },
    async handle({ tenant, send }) {
      send(200, await tenant.privacyPolicy());
    },
  }),
  route({
    method: 'put',
    path: '/settings/privacy',
    name: 'putPrivacyPolicy',
    access: 'admin',
    summary: 'Gives this tenant a privacy policy of its own, from the next write on',
    description:
      '`off` looks for nothing. `mark` stores the text and names the kinds in `metadata.sensitive`, by which queries ' +
      'may filter. `redact` stores a marker such as `[REDACTED:iban]` in place of each value. `refuse` answers 422, ' +
      'and a document ends as `failed` with `refused_content`. What is stored already stays as it is: see `cairn ' +
      'scan`.',
    query: noQuery,
    body: { json: privacySchema, example: { secrets: 'redact', personal: 'mark' } },
    replies: { 200: { description: 'The policy that was set.', json: privacyReply } },
    async handle(call) {
      const policy = await call.readBody();
      await call.tenant.putPrivacyPolicy(policy, requestCaller(call));
      call.send(200, policy);
    },
  }),
];
