import { Counter, type Registry } from 'prom-client';

/** Makes the metrics of standing queries and webhooks. */
export function createStandingMetrics(registers: Registry[]) {
  const webhookDeliveries = new Counter({
    name: 'cairn_webhook_deliveries_total',
    help:
      'Attempts to deliver an event to a webhook, by outcome (delivered, failed, dead); dead means that the last ' +
      'attempt failed.',
    labelNames: ['outcome'],
    registers,
  });
  for (const outcome of ['delivered', 'failed', 'dead']) webhookDeliveries.inc({ outcome }, 0);
  return {
    webhookDeliveries,
    webhookDrops: new Counter({
      name: 'cairn_webhook_dropped_total',
      help:
        'Events that were not handed to a webhook, since too many of its deliveries wait, or since one memory ' +
        'answers too many standing queries. The change feed has them.',
      registers,
    }),
    standingAnswers: new Counter({
      name: 'cairn_standing_answers_total',
      help: 'Memories that answered a standing query.',
      registers,
    }),
  };
}
