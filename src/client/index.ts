/** `cairn-memory/client`: a client of Cairn's HTTP API. */
export { createClient, type Client, type ClientOptions } from './create-client.ts';
export { addAll, type AddAllOptions } from './add-all.ts';
export { CairnError, isCairnError, type CairnErrorCode } from './errors.ts';
export type * from './generated/types.ts';
export type { CallOptions, EventOf, Events, Page, ReadyOptions, Receipt, Reply, WithHead } from './reply.ts';
export type { Fetch } from './send.ts';
