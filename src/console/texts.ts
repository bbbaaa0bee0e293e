/** All texts of the console. Those of each page are in the folder `texts`. */
import { admin } from './texts/admin.ts';
import { ask, code, compare, why } from './texts/ask.ts';
import { browse, graph, name } from './texts/browse.ts';
import { changes } from './texts/changes.ts';
import { decay } from './texts/decay.ts';
import { documents } from './texts/documents.ts';
import { evals } from './texts/evals.ts';
import { federated } from './texts/federated.ts';
import { gathered } from './texts/gathered.ts';
import { learned } from './texts/learned.ts';
import { memory } from './texts/memory.ts';
import { receipts } from './texts/receipts.ts';
import { recalls } from './texts/recalls.ts';
import { fields, shell, signIn } from './texts/shell.ts';
import { standing } from './texts/standing.ts';
import { work } from './texts/work.ts';

/** All texts that the console shows, by page. Functions insert a number, a name or a time into a sentence. */
export const texts = {
  loading: 'Loading …',
  tryAgain: 'Try again',
  cancel: 'Cancel',
  close: 'Close',
  open: 'Open',
  save: 'Save',
  remove: 'Remove',
  removed: 'Removed.',
  showAll: (characters: string) => `Show all ${characters} characters`,
  noPage: 'There is no such page',
  more: 'Load more',
  noAnswer: 'The service does not answer.',
  answered: (status: number) => `The service answered ${status}.`,
  outdated: 'This page could not be loaded',
  outdatedAbout: 'The service does not answer, or was upgraded meanwhile. Load the console again; nothing is lost.',
  reload: 'Load again',

  shell,
  signIn,
  fields,
  ask,
  why,
  compare,
  code,
  memory,
  browse,
  changes,
  name,
  graph,
  documents,
  admin,
  decay,
  evals,
  federated,
  gathered,
  learned,
  receipts,
  recalls,
  standing,
  work,
} as const;
