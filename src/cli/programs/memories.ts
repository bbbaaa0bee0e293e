import { addDataCommands } from './data.ts';
import { type Command, Option } from 'commander';
import { FEEDBACK_VERDICTS, FORMATS } from '../../engine/for-options.ts';
import type { FederatedQueryOptions } from '../commands/federation.ts';
import type { DiffOptions } from '../commands/diff.ts';
import type { LearnOptions } from '../commands/learn.ts';
import type { RecallOptions, RecallsOptions } from '../commands/recall.ts';
import type { ReceiptOptions } from '../commands/receipt.ts';
import type { EvalOptions } from '../commands/eval.ts';
import { addReviewCommands } from './review.ts';
import { asking, collect, integer, names, overHttp, parseObject, parsePast } from '../options.ts';

/** Adds the commands about memories and documents of a running server. */
export function addMemoryCommands(program: Command): void {
  program.commandsGroup('Memories (of a running server)');
  addReading(program);
  addHistory(program);
  addRecalls(program);
  addLearning(program);
  addReviewCommands(program);
  addBulk(program);
}

/** Adds the commands that store, find, explain and list single memories. */
function addReading(program: Command): void {
  overHttp(program, 'add')
    .description('store a memory')
    .argument('<text...>', 'the text to store, or - to read it from standard input')
    .option('--user <id>', 'the user who owns the memory')
    .option('--session <id>', 'the conversation or task that the memory belongs to')
    .option('--tag <tag>', 'a tag; may be repeated', collect)
    .option('--title <title>', 'a line above the text')
    .option('--metadata <json>', 'a JSON object', parseObject)
    .option('--keep-duplicates', 'store the text even if a memory says exactly the same already')
    .option('--supersedes <id>', 'put it in the place of a memory of the same user, which stays as superseded')
    .option('--wait', 'wait until the memory is classified, embedded and linked')
    .action(async (words: string[], options: object) => (await import('../commands/add.ts')).add(words, options));
  asking(program, 'query')
    .description('find memories')
    .argument('<text...>', 'what to look for')
    .option('--explain', 'show why each memory was found')
    .addOption(
      new Option('--format <format>', 'format of the answer; prompt and text are for language models').choices(FORMATS),
    )
    .option('--json', 'same as --format json: the reply of the server')
    .option('--tenants <ids>', 'ask these tenants of the key at once, separated by commas', names)
    .option('--servers <names>', 'ask these servers, too, separated by commas (see federation)', names)
    .action(async (words: string[], options: FederatedQueryOptions) =>
      options.tenants === undefined && options.servers === undefined
        ? (await import('../commands/query.ts')).query(words, options)
        : (await import('../commands/federation.ts')).queryFederation(words, options),
    );
  asking(program, 'explain')
    .description('explain why a query does or does not return a memory, and what would return it')
    .argument('<query>', 'the text of the query')
    .argument('<id>', 'the memory')
    .option('--json', 'print the reply of the server')
    .action(async (text: string, id: string, options: object) =>
      (await import('../commands/explain.ts')).explain(text, id, options),
    );
  overHttp(program, 'list')
    .description('list memories, the last added first')
    .option('--user <id>', 'only memories of this user')
    .option('--session <id>', 'only memories of this session')
    .option('--type <type>', 'only memories of this type')
    .option('--tag <tag>', 'only memories with this tag; may be repeated', collect)
    .option('--file <path>', 'only memories that mention this file; may be repeated for any of several', collect)
    .option('--by-time', 'order by the time of the event instead of the time of adding')
    .option('--oldest-first', 'the other way round')
    .option('--limit <count>', 'most memories', integer(1, 100_000_000), 20)
    .option('--json', 'print each memory as a line of JSON')
    .action(async (options: { limit: number }) => (await import('../commands/list.ts')).list(options));
  overHttp(program, 'timeline')
    .description('show the memories before and after a memory in time')
    .argument('<id>', 'id of the memory, as query --json and add show it')
    .option('--before <count>', 'number of earlier memories', integer(0, 100), 5)
    .option('--after <count>', 'number of later memories', integer(0, 100), 5)
    .option('--session', 'only memories of its session')
    .option('--json', 'print the reply of the server')
    .action(async (id: string, options: { before: number; after: number }) =>
      (await import('../commands/timeline.ts')).timeline(id, options),
    );
}

/** Adds the commands that report changes of memories, and changes in the quality of answers. */
function addHistory(program: Command): void {
  overHttp(program, 'diff')
    .description('tell what became known, was changed, replaced, contradicted and faded since a time')
    .requiredOption('--from <time>', 'start: a time such as 2026-01-31, or how long ago, such as 7d or 12h', parsePast)
    .option('--to <time>', 'end: the same; now by default', parsePast)
    .option('--user <id>', 'only memories of this user')
    .option('--session <id>', 'only memories of this conversation or task')
    .option('--topic <text>', 'only memories that a query with this text finds')
    .option('--valid', 'what held at the two times, in place of what was stored')
    .option('--json', 'print the reply of the server')
    .action(async (options: DiffOptions) => (await import('../commands/diff.ts')).diff(options));
  overHttp(program, 'eval')
    .description('run evaluation sets, and compare with the run before; needs an admin key')
    .argument('[name]', 'the set; all by default')
    .option('--file <path>', 'store the set in this file first: JSON as for POST /evals')
    .option('--copy <backup>', 'run them on a copy of a backup, by this version and these settings')
    .option('--json', 'print each run as a line of JSON')
    .action(async (name: string | undefined, options: EvalOptions) =>
      (await import('../commands/eval.ts')).runEvals(name, options),
    );
}

/** Adds the commands about recalls, which are earlier answers to queries. */
function addRecalls(program: Command): void {
  overHttp(program, 'recalls')
    .description('list answers that were given, newest first')
    .option('--user <id>', 'only questions about this user')
    .option('--memory <id>', 'only answers that had this memory')
    .option('--limit <count>', 'most answers to list', integer(1, 100), 20)
    .option('--json', 'print the reply of the server')
    .action(async (options: RecallsOptions) => (await import('../commands/recall.ts')).recalls(options));
  overHttp(program, 'recall')
    .description('show how an answer came about, ask it again, or say what its matches were good for')
    .argument('<id>', 'recall_id of the answer, as query --json shows it')
    .addOption(
      new Option('--replay [state]', 'ask it again: of the state of then, or of now, and show what differs').choices([
        'then',
        'now',
      ]),
    )
    .addOption(new Option('--feedback <verdict>', 'what matches were good for').choices(FEEDBACK_VERDICTS))
    .option('--memory <id>', 'a match that the feedback is about; may be repeated', collect)
    .option('--json', 'print the reply of the server')
    .action(async (id: string, options: RecallOptions) => (await import('../commands/recall.ts')).recall(id, options));
}

function addLearning(program: Command): void {
  overHttp(program, 'learn')
    .description('learn weights of the ranking from feedback on answers, and propose them; needs an admin key')
    .option('--list', 'show what was learned before')
    .option('--accept <id>', 'use a proposal from now on')
    .option('--revert <id>', 'undo an acceptance')
    .option('--json', 'print the reply of the server')
    .action(async (options: LearnOptions) => (await import('../commands/learn.ts')).learn(options));
}

/** Adds the commands about many memories or documents at once, and `receipt`, `reflect` and `stats`. */
function addBulk(program: Command): void {
  addDataCommands(program);
  overHttp(program, 'ingest')
    .description('store documents; after an interruption or a change run it again, known documents are recognised')
    .argument(
      '<path or url...>',
      'files, folders (all files that can be read), patterns such as "docs/**/*.pdf", http(s) URLs',
    )
    .option('--user <id>', 'the user who owns the documents')
    .option('--session <id>', 'the conversation or task that the documents belong to')
    .option('--tag <tag>', 'a tag; may be repeated', collect)
    .option('--metadata <json>', 'a JSON object', parseObject)
    .option('--no-wait', 'do not wait until they are read, embedded and linked')
    .addHelpText(
      'after',
      '\nA file is recognised by its absolute path: a changed file replaces its old version.\n' +
        'Files with the same bytes are one document.\n' +
        'Hidden files, symbolic links and node_modules in folders are skipped.',
    )
    .action(async (targets: string[], options: { wait: boolean }) =>
      (await import('../commands/ingest.ts')).ingest(targets, options),
    );
  overHttp(program, 'watch')
    .description('keep the documents of a folder in step with its files: changed, new, renamed and removed ones')
    .argument('<folder>', 'the folder; all files in it that can be read')
    .option('--user <id>', 'the user who owns the documents')
    .option('--session <id>', 'the conversation or task that the documents belong to')
    .option('--tag <tag>', 'a tag; may be repeated', collect)
    .option('--metadata <json>', 'a JSON object', parseObject)
    .option('--only <pattern>', 'only files whose path matches, such as "**/*.md"; may be repeated', collect)
    .option('--once', 'bring them in step once, wait until they are read, and end')
    .option('--yes', 'at the start, remove the documents of missing files even if these are all or most of them')
    .addHelpText(
      'after',
      '\nFiles are found and recognised as by `cairn ingest`. It starts with what happened meanwhile.\n' +
        'A document leaves only if nothing is at its path any more.',
    )
    .action(async (folder: string, options: object) => (await import('../commands/watch.ts')).watch(folder, options));

  overHttp(program, 'receipt')
    .description('tell which memory holds which characters of a document, and what was left out')
    .argument('<id>', 'id of the document, as ingest shows it; with --batch receipt_id of a batch of memories')
    .option('--batch', 'tell which memory holds each item of a batch, and which were refused and why')
    .option('--verify', 'fetch the whole text and compare it with the receipt')
    .option('--json', 'print the receipt as JSON')
    .action(async (id: string, options: ReceiptOptions) =>
      options.batch
        ? (await import('../commands/batch-receipt.ts')).batchReceipt(id, options)
        : (await import('../commands/receipt.ts')).receipt(id, options),
    );
  overHttp(program, 'reflect')
    .description('let the language model write down conclusions from the latest memories')
    .option('--user <id>', 'the user whose memories are read; by default memories of no particular user')
    .option('--session <id>', 'only memories of this conversation or task')
    .option('--no-wait', 'do not wait for the result')
    .action(async (options: { wait: boolean }) => (await import('../commands/reflect.ts')).reflect(options));
  overHttp(program, 'stats')
    .description('show memories, sectors, jobs and sizes')
    .action(async (options: object) => (await import('../commands/stats.ts')).stats(options));
}
