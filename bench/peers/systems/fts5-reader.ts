/** A thread that answers questions from the file of fts5.ts on a connection of its own. */
import { parentPort, workerData } from 'node:worker_threads';
import { createHashedEmbedder } from '../../../src/engine/adapters/hashed-embedder.ts';
import { createSearch, openFile } from './fts5.ts';

const search = createSearch(openFile(workerData as string), createHashedEmbedder());
parentPort!.on('message', (question: string) => parentPort!.postMessage(search(question)));
