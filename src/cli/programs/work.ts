import { type Command, Option } from 'commander';
import { JOB_STATES } from '../../engine/for-options.ts';
import { integer, overHttp } from '../options.ts';
import { addFederationCommands } from './federation.ts';
import { addConsolidationCommands } from './consolidations.ts';
import { addStandingCommands } from './standing.ts';

/**
 * Adds the commands about the background work of a running server (jobs, embeddings), its activity, settings and
 * events, and about standing queries, webhooks, federation and consolidations.
 */
export function addWorkCommands(program: Command): void {
  addEmbeddingCommands(program);

  overHttp(program, 'activity')
    .description('show requests, times, jobs and cost of the last hour; needs an admin key of the default tenant')
    .option('--json', 'print the reply of the server')
    .action(async (options: object) => (await import('../commands/activity.ts')).activity(options));
  overHttp(program, 'settings')
    .description('show what the server was started with; needs an admin key of the default tenant')
    .argument('[words...]', 'words of the name or the description of a setting')
    .option('--set', 'only what is not the default')
    .option('--json', 'print the settings as JSON')
    .action(async (words: string[], options: object) =>
      (await import('../commands/settings.ts')).settings(words, options),
    );

  overHttp(program, 'events')
    .description('print what happened to memories, documents and jobs, oldest first')
    .option('--follow', 'print what happens from now on, until it is ended')
    .option('--cursor <cursor>', 'begin behind this cursor')
    .option('--kinds <kinds>', 'only these kinds, separated by commas')
    .option('--user <id>', 'only memories and documents of this user')
    .option('--json', 'print each event as a line of JSON, with its cursor')
    .action(async (options: object) => (await import('../commands/events.ts')).events(options));

  addStandingCommands(program);
  addFederationCommands(program);
  addConsolidationCommands(program);

  const jobs = program.command('jobs').description('background work: list, retry, cancel, discard');
  overHttp(jobs, 'list', { isDefault: true })
    .description('list jobs and why they failed, newest first')
    .addOption(new Option('--state <state>', 'only jobs in this state; dead jobs have given up').choices(JOB_STATES))
    .option('--limit <count>', 'most entries to list', integer(1, 1000), 20)
    .action(async (options: { limit: number }) => (await import('../commands/jobs.ts')).listJobs(options));
  overHttp(jobs, 'retry')
    .description('start a dead, failed or cancelled job again, or all jobs of a state')
    .argument('[id]')
    .addOption(new Option('--state <state>', 'all jobs in this state, instead of one').choices(['dead', 'cancelled']))
    .action(async (id: string | undefined, options: object) =>
      (await import('../commands/jobs.ts')).retryJobs(id, options),
    );
  overHttp(jobs, 'cancel')
    .description('cancel an unfinished job')
    .argument('<id>')
    .action(async (id: string, options: object) => (await import('../commands/jobs.ts')).cancelJob(id, options));
  overHttp(jobs, 'discard')
    .description('remove a dead or cancelled job from the list')
    .argument('<id>')
    .action(async (id: string, options: object) => (await import('../commands/jobs.ts')).discardJob(id, options));
}

function addEmbeddingCommands(program: Command): void {
  overHttp(program, 'reembed')
    .description('embed all memories with the model in the settings; the old model answers until all are done')
    .option('--status', 'only show the progress and an estimate')
    .option('--pause', 'pause; reembed resumes')
    .option('--cancel', 'cancel; the old model stays live')
    .option('--without-refused', 'change to the new model even if it refuses many memories')
    .option('--force', 'change to the new model even if a guarded evaluation set falls')
    .action(async (options: object) => (await import('../commands/reembed.ts')).reembed(options));

  const embeddings = program
    .command('embeddings')
    .description('show calls of embedding providers and the language model');
  overHttp(embeddings, 'stats', { isDefault: true })
    .description('show calls, tokens, cost and savings of the cache, by day and model')
    .option('--days <count>', 'number of days', integer(1, 3660), 30)
    .action(async (options: { days: number }) => (await import('../commands/embeddings.ts')).embeddingStats(options));
  overHttp(embeddings, 'failures')
    .description('list failed calls and their reasons, newest first')
    .option('--limit <count>', 'most entries to list', integer(1, 1000), 20)
    .action(async (options: { limit: number }) =>
      (await import('../commands/embeddings.ts')).embeddingFailures(options),
    );
}
