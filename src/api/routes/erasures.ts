import { route, type Route } from '../route.ts';
import { erasurePage, erasureReply } from '../schemas/erasures.ts';
import { noQuery, pageQuery } from '../schemas/values.ts';
import { erasureItem, erasureReplyItem } from '../wire/erasures.ts';

const ID = '01a1fe30-e25b-7576-a0c2-3c4e3646bd72';
const EXAMPLE = {
  id: ID,
  kind: 'memory' as const,
  key: 'environment',
  begun_at: 1795265978965,
  closed_at: 1795265978970,
  by: [],
  counts: { memories: 1, vectors: 1 },
  searched: ['memories', 'revisions', 'word index'],
  words: 2,
  phrases: 1,
  chain_no: 1,
  hash: '9b74c9897bac770ffc029102a200c5de9b74c9897bac770ffc029102a200c5de',
};

/** Routes of the receipts of deletes: each receipt proves by hashes what one delete erased. */
export const erasureRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/erasures',
    name: 'listErasures',
    access: 'admin',
    summary: 'Lists the receipts of deletes, newest first',
    description:
      'Each delete leaves a receipt without any text: what was erased, when, by which key, and salted hashes of its ' +
      'words. The salt is stored nowhere; the reply to the delete told it in `erasure`. The receipts are a chain of ' +
      'hashes, kept for `OM_AUDIT_DAYS`.',
    query: pageQuery,
    replies: {
      200: { description: 'A page of receipts.', json: erasurePage, example: { items: [EXAMPLE], total: 1 } },
    },
    async handle({ tenant, query: { l, u }, send }) {
      const { items, total } = await tenant.listErasures({ limit: l, offset: u });
      send(200, { items: items.map(erasureItem), total });
    },
  }),
  route({
    method: 'get',
    path: '/erasures/:id',
    name: 'getErasure',
    access: 'admin',
    summary: 'Shows the receipt of a delete with its hashes',
    params: { id: { description: 'Id of the receipt.', example: ID } },
    query: noQuery,
    errors: { not_found: 'No receipt has this id.' },
    replies: {
      200: {
        description: 'The receipt.',
        json: erasureReply,
        example: {
          ...EXAMPLE,
          ids: ['01a1feb9-11f2-7362-8b9d-88949a451b09'],
          word_hashes: ['1f0c2a7e9b31', '9b74c9897bac'],
          phrase_hashes: ['770ffc029102'],
          salt_hash: '5b1c8e02d7f4',
        },
      },
    },
    async handle({ tenant, params, send }) {
      send(200, erasureReplyItem(await tenant.getErasure(params.id)));
    },
  }),
];
