/** What is promised in some files, and the tests that must notice when it is broken, the cheapest first. */
export type Area = { files: readonly string[]; tests: readonly string[] };

export const areas: Readonly<Record<string, Area>> = {
  claims: {
    files: ["src/jobs/claim.ts", "src/store/job-store.ts"],
    tests: [
      "test/workers/claims.test.ts",
      "test/workers/job-store.test.ts",
      "test/workers/jobs.test.ts",
      "test/workers/orphaned-work.test.ts",
      "test/long/two-holders.test.ts",
    ],
  },
  attempts: {
    files: ["workers/verdict.ts", "workers/hold-lease.ts", "workers/run-job.ts"],
    tests: ["test/unit/verdict.test.ts", "test/unit/hold-lease.test.ts", "test/workers/shell.test.ts"],
  },
  submit: {
    files: ["src/jobs/submit.ts", "src/jobs/reject.ts", "src/jobs/reconcile.ts"],
    tests: [
      "test/unit/reject.test.ts",
      "test/workers/submit.test.ts",
      "test/workers/reconcile.test.ts",
      "test/workers/jobs.test.ts",
      "test/workers/orphaned-work.test.ts",
    ],
  },
  ledger: {
    files: ["src/gateway/money/ledger.ts", "src/gateway/money/account.ts"],
    tests: ["test/unit/ledger.test.ts", "test/unit/account.test.ts"],
  },
  budget: {
    files: ["src/gateway/money/budget.ts", "src/store/budget-store.ts"],
    tests: [
      "test/http/budget-store.test.ts",
      "test/unit/budget.test.ts",
      "test/http/budget.test.ts",
      "test/long/budget-burst.test.ts",
    ],
  },
  approvals: {
    files: ["src/workflows/approvals.ts", "src/workflows/steps/human-approval.ts", "src/store/approval-store.ts"],
    tests: ["test/workers/approval-turns.test.ts", "test/http/approvals.test.ts"],
  },
  audit: {
    files: ["src/agents/audit.ts", "src/store/audit-store.ts"],
    tests: ["test/unit/audit.test.ts", "test/http/audit-store.test.ts"],
  },
  idempotency: {
    files: ["api/middleware/idempotency.ts", "src/store/idempotency-store.ts"],
    tests: ["test/unit/idempotency.test.ts", "test/http/idempotency-store.test.ts", "test/http/idempotency.test.ts"],
  },
  fetch: {
    files: ["src/net/address-rules.ts", "src/net/guarded-fetch.ts"],
    tests: ["test/unit/address-rules.test.ts", "test/unit/guarded-fetch.test.ts"],
  },
  secrets: {
    files: ["src/tenancy/envelope.ts"],
    tests: ["test/unit/envelope.test.ts", "test/http/provider-keys.test.ts"],
  },
  tenants: {
    files: ["src/store/collection.ts", "src/store/tenant-store.ts", "src/tenancy/roles.ts"],
    tests: [
      "test/http/tenant-store.test.ts",
      "test/http/idempotency-store.test.ts",
      "test/http/identity.test.ts",
      "test/http/budget.test.ts",
      "test/http/tenant-wall.test.ts",
      "test/http/organizations.test.ts",
      "test/http/fallback.test.ts",
    ],
  },
};
