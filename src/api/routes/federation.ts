import { MAX_FILTER_NAMES } from '../check-json-text.ts';
import { createFederationClient, FEDERATED_HEADER, loadHttpClient } from '../../engine/adapters/index.ts';
import { EngineError } from '../../engine/index.ts';
import { askMembers, membersOf } from '../ask-members.ts';
import { changeControl } from '../control-turn.ts';
import { sendObject } from '../json-reply.ts';
import { route, type Route } from '../route.ts';
import {
  federatedAnswer,
  federatedQuery,
  newServer,
  removedServer,
  server,
  serverList,
} from '../schemas/federation.ts';
import { noQuery } from '../schemas/values.ts';
import { serverItem } from '../wire/federation.ts';

const EXAMPLE = {
  name: 'berlin',
  url: 'https://memory.example.com',
  tenant: null,
  has_key: true,
  created_at: 1795265978965,
  written_by: '3f2a9c0d1e4b5a68',
};

/** Size of the matches from which an answer is sent in pieces, in bytes of JSON. */
const LONG_ANSWER_BYTES = 128 * 1024;

/** Routes of queries to several tenants and servers, and of the registered servers. */
export const federationRoutes: readonly Route[] = [
  route({
    method: 'post',
    path: '/federation/query',
    name: 'queryFederation',
    repeatable: true,
    access: 'read',
    forBoundKeys: true,
    recordsItsReads: true,
    limited: ['queries'],
    summary: 'Asks several tenants and servers at once',
    description:
      'The tenants and servers that are asked are the members. All members are asked at the same time, and their ' +
      'matches are merged by `score`, which is comparable between stores; each match says where it is from. ' +
      '`members` has an entry for each of them; one that fails, or does not answer within ' +
      '`OM_FEDERATION_TIMEOUT_MS`, makes the answer `degraded`. No memory is reinforced. Each tenant that is asked ' +
      'counts as a query in the rate limit `queries` of the key. A key that is bound to a user or tags may name ' +
      'tenants only, and is answered within its bounds. Other servers are asked by `POST /memory/query`, so they ask ' +
      'no further members.',
    query: noQuery,
    body: {
      json: federatedQuery,
      maxNames: MAX_FILTER_NAMES,
      example: { query: 'when do we deploy to staging?', tenants: ['default'], servers: ['berlin'], k: 1 },
    },
    replies: { 200: { description: 'The best matches of all members.', json: federatedAnswer } },
    errors: {
      forbidden: 'The key has no access to one of the tenants, or may not name servers.',
      not_found: 'One of `servers` is not registered.',
      conflict: 'Another Cairn server sent the question (header `x-cairn-federated`), so it is not passed on.',
    },
    async handle(call) {
      const { api, request, tenant, readBody, send } = call;
      if (request.headers[FEDERATED_HEADER] !== undefined)
        throw new EngineError('conflict', 'this question was federated by another server and is not asked on');
      const body = await readBody();
      const members = membersOf(call, body);
      if (members.servers.length > 0 && api.engine.config.OM_AUDIT === 'all')
        await tenant.recordAction('federation.ask', { servers: members.servers.map(({ name }) => name) });
      const { answer, bytes } = await askMembers(call, body, members);
      // Texts take up to two bytes a character in memory.
      if (bytes > LONG_ANSWER_BYTES) await sendObject(call, answer, 2 * bytes);
      else send(200, answer);
    },
  }),
  route({
    method: 'post',
    path: '/federation/servers',
    name: 'addServer',
    access: 'admin',
    summary: 'Registers another Cairn server, which questions of the tenant may name',
    description:
      'From then on, every key of this tenant that may read and is not bound to a user or tags may send questions to ' +
      'the server and read its answers. The key of the server is stored only if the data folder is sealed ' +
      '(encrypted, `OM_ENCRYPTION_KEY_FILE`), and no reply shows it.',
    query: noQuery,
    body: {
      json: newServer,
      example: { name: 'berlin', url: 'https://memory.example.com', key: 'KEY_OF_THAT_SERVER' },
    },
    replies: { 201: { description: 'The server is registered.', json: server, example: EXAMPLE } },
    errors: {
      conflict:
        'The name is taken, the tenant has 32 servers already, or a `key` was sent and the data folder is not sealed.',
    },
    async handle({ api, principal, readBody, send }) {
      const { name, url, key = null, tenant = null } = await readBody();
      // Here, so that no question waits for it. Other processes do so at their start, or with their first question.
      await loadHttpClient();
      const access = { name, url: createFederationClient(api.engine.config).check(url), key, remoteTenant: tenant };
      const { tenantId, keyId } = principal;
      send(201, serverItem(await changeControl({ api, principal }, 'addServer', tenantId, access, keyId)));
    },
  }),
  route({
    method: 'get',
    path: '/federation/servers',
    name: 'listServers',
    access: 'read',
    keyOnly: true,
    summary: 'Lists the servers that questions of the tenant may name, without their keys',
    query: noQuery,
    replies: { 200: { description: 'The servers.', json: serverList, example: { items: [EXAMPLE], total: 1 } } },
    handle({ api, principal, send }) {
      const items = api.engine.control.federation.list(principal.tenantId).map(serverItem);
      send(200, { items, total: items.length });
    },
  }),
  route({
    method: 'delete',
    path: '/federation/servers/:name',
    name: 'removeServer',
    access: 'admin',
    summary: 'Removes a registered server and its key',
    params: { name: { description: 'Name of the server.', example: 'berlin' } },
    query: noQuery,
    replies: {
      200: { description: 'The server is removed.', json: removedServer, example: { removed: true } },
    },
    errors: { not_found: 'No server of the tenant has this name.' },
    async handle({ api, principal, params: { name }, send }) {
      await changeControl({ api, principal }, 'removeServer', principal.tenantId, name, principal.keyId);
      send(200, { removed: true });
    },
  }),
];
