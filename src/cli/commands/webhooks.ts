import type { NewWebhookInput } from '../../api/schemas/standing.ts';
import { connect, type ConnectionOptions } from '../client.ts';
import { bold, counted, dim, print, red, table } from '../terminal.ts';

export interface WebhookOptions extends ConnectionOptions {
  readonly user?: string;
  readonly events?: string;
  readonly state?: 'pending' | 'delivered' | 'dead';
  readonly json?: boolean;
}

/**
 * Runs `cairn webhooks add`: registers an address to which events are sent, and prints the secret of their signatures.
 */
export async function addWebhook(url: string, options: WebhookOptions): Promise<void> {
  const { user, events, json, ...connection } = options;
  const created = await connect(connection).createWebhook({
    url,
    ...(user === undefined ? {} : { user_id: user }),
    ...(events === undefined ? {} : { events: events.split(',') as NewWebhookInput['events'] }),
  });
  if (json) return print(JSON.stringify(created));
  print(`${created.id}  is told of events from now on`, `secret, shown this once: ${bold(created.secret)}`);
}

/** Runs `cairn webhooks list`: prints up to 1,000 webhooks with the numbers of their deliveries. */
export async function listWebhooks({ user, json, ...connection }: WebhookOptions): Promise<void> {
  const page = await connect(connection).listWebhooks({ l: 1000, user_id: user });
  if (json) return print(JSON.stringify(page));
  const rows = page.items.map(({ id, url, events, standing_id: standing, written_by: by, deliveries: of, ...more }) => [
    id,
    String(of.pending),
    String(of.delivered),
    String(of.dead),
    String(more.dropped),
    by ?? '',
    standing === null ? events.join(',') || 'all' : `answers to ${standing}`,
    url,
  ]);
  const columns = ['id', 'pending', 'delivered', 'dead', 'dropped', 'key', 'events', 'url'];
  const [head, ...body] = table([columns, ...rows], '<>>>><<<');
  print(dim(head!), ...body);
}

/** Runs `cairn webhooks deliveries ID`: prints the latest 100 deliveries of a webhook. */
export async function listDeliveries(id: string, { state, json, ...connection }: WebhookOptions): Promise<void> {
  const page = await connect(connection).listDeliveries({ id, state, l: 100 });
  if (json) return print(JSON.stringify(page));
  for (const { at, type, event_id: event, attempts, last_error: error, ...delivery } of page.items) {
    print(`${new Date(at).toISOString()}  ${type}  ${event ?? ''}  ${delivery.state}, ${counted(attempts, 'attempt')}`);
    if (error !== null) print(`  ${red(error)}`);
  }
}

/** Runs `cairn webhooks retry ID`: lets the server try the failed (dead) deliveries of a webhook again. */
export async function retryDeliveries(id: string, connection: ConnectionOptions): Promise<void> {
  const { retried } = await connect(connection).retryDeliveries({ id });
  print(`${counted(retried, 'delivery', 'deliveries')} tried again`);
}

/** Runs `cairn webhooks remove ID`: deletes a webhook with its deliveries. */
export async function removeWebhook(id: string, connection: ConnectionOptions): Promise<void> {
  await connect(connection).deleteWebhook({ id });
  print(`${id}  removed`);
}
