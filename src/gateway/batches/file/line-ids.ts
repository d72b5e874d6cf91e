import { createHash } from "node:crypto";
import type { FileBatchDocument } from "../../../store/file-store.ts";

/** The jobs of a batch's lines, in their order. */
export function lineJobIds({ _id, total }: Pick<FileBatchDocument, "_id" | "total">): string[] {
  return Array.from({ length: total }, (_, line) => lineJobId(_id, line));
}

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** The id of the job of a line: always the same, so that a line which is taken up again makes no second job. */
function lineJobId(batchId: string, line: number): string {
  const hash = createHash("sha256").update(`${batchId}:${line}`).digest();
  const random = Array.from(hash.subarray(0, 16), (byte) => alphabet[byte & 31]).join("");
  return `job_${batchId.slice(-26, -16)}${random}`; // the batch's time, and then what tells its lines apart
}
