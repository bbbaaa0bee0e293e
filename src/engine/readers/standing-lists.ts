/**
 * Read commands of standing queries and webhooks. Each counts or sorts answers or deliveries, and a tenant may have as
 * many of these as memories, so they run on reader threads.
 */
import { getStandingQuery, listStandingAnswers, listStandingQueries } from '../store/standing.ts';
import { listUnembeddedQueries } from '../store/standing-vectors.ts';
import { getWebhook, listDeliveries, listWebhooks } from '../store/webhooks.ts';
import type { DeliveryState, StandingPage, StandingPart } from '../types.ts';
import type { ReadContext } from './read-context.ts';

/** The read commands of standing queries and webhooks, by name. */
export const STANDING_LISTS = {
  listStandingQueries: ({ open }: ReadContext, page: StandingPage & { readonly before?: number | undefined }) => {
    const { store } = open();
    return store.read(() => listStandingQueries(store, page));
  },
  getStandingQuery: ({ open }: ReadContext, { id }: { readonly id: string }) => {
    const { store } = open();
    return store.read(() => getStandingQuery(store, id));
  },
  listStandingAnswers: ({ open }: ReadContext, { id, page }: { readonly id: string; readonly page: StandingPart }) => {
    const { store } = open();
    return store.read(() => listStandingAnswers(store, id, page));
  },
  listUnembeddedQueries: (
    { open }: ReadContext,
    { modelNo, limit }: { readonly modelNo: number; readonly limit: number },
  ) => {
    const { store } = open();
    return store.read(() => listUnembeddedQueries(store, modelNo, limit));
  },
  listWebhooks: ({ open }: ReadContext, page: StandingPage) => {
    const { store } = open();
    return store.read(() => listWebhooks(store, page));
  },
  getWebhook: ({ open }: ReadContext, { id }: { readonly id: string }) => {
    const { store } = open();
    return store.read(() => getWebhook(store, id));
  },
  listDeliveries: (
    { open }: ReadContext,
    { id, page }: { readonly id: string; readonly page: StandingPart & { readonly state?: DeliveryState | undefined } },
  ) => {
    const { store } = open();
    return store.read(() => listDeliveries(store, id, page));
  },
};
