// In place of d3-transition, which the graph's zoom asks for: nothing in it moves by itself, so nothing is interrupted.
import { selection } from "d3-selection";

export const interrupt = (): void => undefined;
Object.assign(selection.prototype, { interrupt(this: object) { return this; } });
