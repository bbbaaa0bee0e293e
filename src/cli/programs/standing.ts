import { type Command, Option } from 'commander';
import { DELIVERY_STATES } from '../../engine/for-options.ts';
import type { StandingOptions } from '../commands/standing.ts';
import type { WebhookOptions } from '../commands/webhooks.ts';
import { fraction, overHttp, parseObject } from '../options.ts';

const JSON_LINE = 'print the reply as JSON';

/** Adds the commands about standing queries and webhooks of a running server. */
export function addStandingCommands(program: Command): void {
  const standing = program
    .command('standing')
    .description('questions: you are told, once, of each memory that answers one from now on');
  overHttp(standing, 'list', { isDefault: true })
    .description('list standing queries, newest first')
    .option('--user <id>', 'only those about this user')
    .option('--json', JSON_LINE)
    .action(async (options: StandingOptions) => (await import('../commands/standing.ts')).listStanding(options));
  overHttp(standing, 'add')
    .description('register a question')
    .argument('<question...>')
    .option('--user <id>', 'only memories of this user answer')
    .option('--min-score <score>', 'lowest score of an answer', fraction)
    .option('--filters <json>', 'conditions on the memories that answer, as in a query', parseObject)
    .option('--webhook <url>', 'where the answers are sent')
    .option('--json', JSON_LINE)
    .action(async (words: string[], options: StandingOptions) =>
      (await import('../commands/standing.ts')).addStanding(words, options),
    );
  overHttp(standing, 'answers')
    .description('list the memories that answered, newest first')
    .argument('<id>')
    .option('--json', JSON_LINE)
    .action(async (id: string, options: StandingOptions) =>
      (await import('../commands/standing.ts')).standingAnswers(id, options),
    );
  overHttp(standing, 'remove')
    .description('remove a standing query, its answers and its webhook')
    .argument('<id>')
    .action(async (id: string, options: object) =>
      (await import('../commands/standing.ts')).removeStanding(id, options),
    );
  addWebhooks(program);
}

function addWebhooks(program: Command): void {
  const webhooks = program.command('webhooks').description('addresses that are told of events, signed');
  overHttp(webhooks, 'list', { isDefault: true })
    .description('list webhooks, newest first')
    .option('--user <id>', 'only those about this user')
    .option('--json', JSON_LINE)
    .action(async (options: WebhookOptions) => (await import('../commands/webhooks.ts')).listWebhooks(options));
  overHttp(webhooks, 'add')
    .description('register an address; its secret is shown only once')
    .argument('<url>')
    .option('--events <kinds>', 'only these kinds, separated by commas')
    .option('--user <id>', 'only events about this user')
    .option('--json', JSON_LINE)
    .action(async (url: string, options: WebhookOptions) =>
      (await import('../commands/webhooks.ts')).addWebhook(url, options),
    );
  overHttp(webhooks, 'deliveries')
    .description('list the deliveries of a webhook, newest first')
    .argument('<id>')
    .addOption(new Option('--state <state>', 'only deliveries in this state').choices(DELIVERY_STATES))
    .option('--json', JSON_LINE)
    .action(async (id: string, options: WebhookOptions) =>
      (await import('../commands/webhooks.ts')).listDeliveries(id, options),
    );
  overHttp(webhooks, 'retry')
    .description('try the dead deliveries of a webhook again')
    .argument('<id>')
    .action(async (id: string, options: object) =>
      (await import('../commands/webhooks.ts')).retryDeliveries(id, options),
    );
  overHttp(webhooks, 'remove')
    .description('remove a webhook with its deliveries')
    .argument('<id>')
    .action(async (id: string, options: object) =>
      (await import('../commands/webhooks.ts')).removeWebhook(id, options),
    );
}
