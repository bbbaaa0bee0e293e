import { testErasedNeighbour } from '../../conformance/erased-neighbour.ts';

testErasedNeighbour(() => Promise.resolve({}));
