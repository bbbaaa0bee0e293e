import type { Dashboard } from './dashboard.ts';
import { embedding } from './panels/embedding.ts';
import { overview } from './panels/overview.ts';
import { pipeline } from './panels/pipeline.ts';
import { retrieval } from './panels/retrieval.ts';
import { storage } from './panels/storage.ts';

/** All dashboards, in reading order. */
export const DASHBOARDS: readonly Dashboard[] = [overview, pipeline, retrieval, embedding, storage];
