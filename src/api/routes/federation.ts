import { createFederationClient, FEDERATED_HEADER, loadFederation } from '../../engine/adapters/index.ts';
import { EngineError, nextTurn } from '../../engine/index.ts';
import { askMembers, membersOf } from '../ask-members.ts';
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
      'All members are asked at the same time, and their matches are merged by `score`, which is comparable between ' +
      'stores; each match says where it is from. A member that fails, or does not answer within ' +
      '`OM_FEDERATION_TIMEOUT_MS`, is named in `members` and makes the answer `degraded`. Nothing is reinforced. ' +
      'Each tenant takes one of the `queries` of the key. A key that is bound to a user or tags asks tenants only, ' +
      'within its bounds. Other servers are asked by `POST /memory/query`, which asks nobody else.',
    query: noQuery,
    body: {
      json: federatedQuery,
      example: { query: 'when do we deploy to staging?', tenants: ['default'], servers: ['berlin'], k: 1 },
    },
    replies: { 200: { description: 'The best matches of all members.', json: federatedAnswer } },
    errors: {
      forbidden: 'The key does not reach one of the tenants, or may not have servers asked.',
      not_found: 'A server is not registered.',
      conflict: 'The question comes from another server: it is not asked on.',
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
      'Whoever holds a key of this tenant with the role `read` may have questions sent to it and reads what it ' +
      'answers. Its own key is kept in a sealed data folder only (`OM_ENCRYPTION_KEY_FILE`), and never shown.',
    query: noQuery,
    body: {
      json: newServer,
      example: { name: 'berlin', url: 'https://memory.example.com', key: 'KEY_OF_THAT_SERVER' },
    },
    replies: { 201: { description: 'The server is registered.', json: server, example: EXAMPLE } },
    errors: {
      conflict: 'The name is taken, the tenant has too many servers, or the data folder is not sealed.',
    },
    async handle({ api, principal, readBody, send }) {
      const { name, url, key = null, tenant = null } = await readBody();
      const { config, control } = api.engine;
      // Here, so that no question waits for it. Other processes do so at their start, or with their first question.
      await loadFederation();
      const access = { name, url: createFederationClient(config).check(url), key, remoteTenant: tenant };
      await nextTurn();
      send(201, serverItem(control.federation.add(principal.tenantId, access, principal.keyId)));
    },
  }),
  route({
    method: 'get',
    path: '/federation/servers',
    name: 'listServers',
    access: 'read',
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
    summary: 'Forgets a server and its key',
    params: { name: { description: 'Name of the server.', example: 'berlin' } },
    query: noQuery,
    replies: {
      200: { description: 'The server is forgotten.', json: removedServer, example: { removed: true } },
    },
    errors: { not_found: 'No server of the tenant has this name.' },
    async handle({ api, principal, params: { name }, send }) {
      await nextTurn();
      api.engine.control.federation.remove(principal.tenantId, name, principal.keyId);
      send(200, { removed: true });
    },
  }),
];
