WITH "discreet_rows" AS (
  SELECT
    *
  FROM (
    SELECT
      "t7"."who",
      "t7"."item",
      "t5"."number" AS "grp"
    FROM (
      SELECT
        TO_UTF8("t1"."customer") AS "who",
        TO_UTF8("t1"."product") AS "item",
        TO_UTF8("t1"."country") AS "key0"
      FROM "mart"."sales" AS "t1"
    ) AS "t7"
    INNER JOIN (
      SELECT
        CAST("key" AS VARCHAR) AS "key",
        CAST("number" AS BIGINT) AS "number"
      FROM (VALUES
        ('DE', 0),
        ('FR', 1)) AS listed("key", "number")
    ) AS "t5"
      ON "t7"."key0" = TO_UTF8("t5"."key")
  ) AS "t10"
  WHERE
    "t10"."who" IS NOT NULL
), "discreet_group_rows" AS (
  SELECT
    *
  FROM (
    SELECT
      "t9"."who",
      "t5"."number" AS "grp"
    FROM (
      SELECT
        TO_UTF8("t4"."customer") AS "who",
        TO_UTF8("t4"."country") AS "key0"
      FROM "mart"."sales" AS "t4"
    ) AS "t9"
    INNER JOIN (
      SELECT
        CAST("key" AS VARCHAR) AS "key",
        CAST("number" AS BIGINT) AS "number"
      FROM (VALUES
        ('DE', 0),
        ('FR', 1)) AS listed("key", "number")
    ) AS "t5"
      ON "t9"."key0" = TO_UTF8("t5"."key")
  ) AS "t11"
  WHERE
    "t11"."who" IS NOT NULL
), "discreet_groups" AS (
  SELECT
    "t19"."who",
    "t19"."grp"
  FROM (
    SELECT
      "t18"."who",
      "t18"."grp",
      "t18"."hash",
      ROW_NUMBER() OVER (PARTITION BY "t18"."who" ORDER BY "t18"."hash" ASC, "t18"."grp" ASC) - 1 AS "position"
    FROM (
      SELECT
        "t17"."who",
        "t17"."grp",
        TO_UTF8(
          LOWER(
            TO_HEX(
              MD5(
                TO_UTF8(
                  CONCAT(CONCAT(LOWER(TO_HEX(MD5("t17"."who"))), ':'), CAST("t17"."grp" AS VARCHAR))
                )
              )
            )
          )
        ) AS "hash"
      FROM (
        SELECT DISTINCT
          *
        FROM "discreet_group_rows" AS "t16"
      ) AS "t17"
    ) AS "t18"
  ) AS "t19"
  WHERE
    "t19"."position" < 1
)
SELECT
  "t26"."grp",
  "t26"."ordinal" AS "item",
  "t26"."score"
FROM (
  SELECT
    "t25"."item",
    "t3"."ordinal",
    "t25"."grp",
    "t25"."score"
  FROM (
    SELECT
      "t23"."grp",
      "t23"."item",
      COUNT(DISTINCT "t23"."who") AS "score"
    FROM (
      SELECT
        "t15"."who",
        "t15"."item",
        "t15"."grp"
      FROM "discreet_rows" AS "t15"
      INNER JOIN "discreet_groups" AS "t22"
        ON "t15"."who" = "t22"."who" AND "t15"."grp" = "t22"."grp"
    ) AS "t23"
    GROUP BY
      1,
      2
  ) AS "t25"
  INNER JOIN (
    SELECT
      CAST("item" AS VARCHAR) AS "item",
      CAST("ordinal" AS BIGINT) AS "ordinal"
    FROM (VALUES
      ('it''s \ 😀', 0),
      ('rum ', 1),
      ('tea', 2)) AS listed("item", "ordinal")
  ) AS "t3"
    ON "t25"."item" = TO_UTF8("t3"."item")
) AS "t26"
