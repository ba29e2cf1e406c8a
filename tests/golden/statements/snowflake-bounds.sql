SELECT
  "t3"."item",
  COALESCE("t14"."score", 0) AS "score"
FROM (
  SELECT
    CAST("item" AS VARCHAR) AS "item"
  FROM (VALUES
    ('tea'),
    ('it\'s \\ 😀'),
    ('rum ')) AS listed("item")
) AS "t3"
LEFT OUTER JOIN (
  SELECT
    "t12"."item",
    COUNT(*) AS "score"
  FROM (
    SELECT
      *
    FROM (
      SELECT
        "t10"."item",
        "t10"."ordinal",
        "t10"."who",
        "t10"."hash",
        ROW_NUMBER() OVER (PARTITION BY "t10"."who" ORDER BY "t10"."hash" ASC, "t10"."ordinal" ASC) - 1 AS "position"
      FROM (
        SELECT
          "t9"."item",
          "t9"."ordinal",
          "t9"."who",
          BITAND(
            (
              BITOR(
                BITAND(
                  (
                    BITAND(
                      SUM(CAST("t9"."ordinal" AS INT)) OVER (
                        PARTITION BY "t9"."who"
                        ORDER BY NULL ASC
                        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                      ),
                      2147483647
                    )
                  ) * 1327217885,
                  2147483647
                ),
                1
              )
            ) * (
              "t9"."ordinal" + 1
            ),
            2147483647
          ) AS "hash"
        FROM (
          SELECT DISTINCT
            *
          FROM (
            SELECT
              "t7"."item",
              "t4"."ordinal",
              "t7"."who"
            FROM (
              SELECT
                *
              FROM (
                SELECT
                  TO_BINARY("t2"."customer", 'UTF-8') AS "who",
                  TO_BINARY("t2"."product", 'UTF-8') AS "item"
                FROM "mart"."sales" AS "t2"
              ) AS "t5"
              WHERE
                "t5"."who" IS NOT NULL
            ) AS "t7"
            INNER JOIN (
              SELECT
                CAST("item" AS VARCHAR) AS "item",
                CAST("ordinal" AS BIGINT) AS "ordinal"
              FROM (VALUES
                ('it\'s \\ 😀', 0),
                ('rum ', 1),
                ('tea', 2)) AS listed("item", "ordinal")
            ) AS "t4"
              ON "t7"."item" = TO_BINARY("t4"."item", 'UTF-8')
          ) AS "t8"
        ) AS "t9"
      ) AS "t10"
    ) AS "t11"
    WHERE
      "t11"."position" < 2
  ) AS "t12"
  GROUP BY
    1
) AS "t14"
  ON TO_BINARY("t3"."item", 'UTF-8') = "t14"."item"
