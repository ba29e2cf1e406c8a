SELECT
  "t2"."item",
  COALESCE("t7"."score", 0) AS "score"
FROM (
  SELECT
    CAST("item" AS VARCHAR) AS "item"
  FROM (VALUES
    ('tea-de')) AS listed("item")
) AS "t2"
LEFT OUTER JOIN (
  SELECT
    "t5"."item",
    COUNT(DISTINCT "t5"."who") AS "score"
  FROM (
    SELECT
      TO_UTF8("t4"."customer") AS "who",
      TO_UTF8("t4"."lower(concat(product, '-', substring(country, 1, 2)))") AS "item"
    FROM (
      SELECT
        "t3"."customer",
        "t3"."product",
        "t3"."number",
        "t3"."amount",
        "t3"."price",
        "t3"."country",
        "t3"."day",
        "t3"."at",
        "t3"."moment",
        TRANSLATE(
          CONCAT(
            CONCAT(
              COALESCE(
                CASE
                  WHEN (
                    LENGTH(TO_UTF8("t3"."product")) <= 65536
                  )
                  AND NOT (
                    REGEXP_LIKE("t3"."product", '\x00')
                  )
                  THEN "t3"."product"
                  ELSE CAST(NULL AS VARCHAR)
                END,
                ''
              ),
              '-'
            ),
            COALESCE(
              SUBSTR(
                CASE
                  WHEN (
                    LENGTH(TO_UTF8("t3"."country")) <= 65536
                  )
                  AND NOT (
                    REGEXP_LIKE("t3"."country", '\x00')
                  )
                  THEN "t3"."country"
                  ELSE CAST(NULL AS VARCHAR)
                END,
                1,
                2
              ),
              ''
            )
          ),
          'ABCDEFGHIJKLMNOPQRSTUVWXYZ',
          'abcdefghijklmnopqrstuvwxyz'
        ) AS "lower(concat(product, '-', substring(country, 1, 2)))"
      FROM (
        SELECT
          *
        FROM "mart"."sales" AS "t1"
        WHERE
          CAST(CASE
            WHEN CAST("t1"."number" AS DECIMAL(38, 0)) * CAST("t1"."number" AS DECIMAL(38, 0)) BETWEEN CAST('-9223372036854775807' AS DECIMAL(38, 0)) AND CAST('9223372036854775807' AS DECIMAL(38, 0))
            THEN CAST("t1"."number" AS DECIMAL(38, 0)) * CAST("t1"."number" AS DECIMAL(38, 0))
            ELSE CAST(NULL AS DECIMAL(38, 0))
          END AS BIGINT) >= 101
          AND (
            (
              (
                CAST(FLOOR(
                  CAST((
                    (
                      CAST(FLOOR(
                        CAST((
                          (
                            (
                              CAST(FLOOR(
                                CAST((
                                  (
                                    (
                                      CASE
                                        WHEN COALESCE(
                                          DATE_DIFF('DAY', FROM_ISO8601_DATE('1970-01-01'), "t1"."day") + 719468,
                                          CAST(FLOOR(CAST((
                                            CAST(NULL AS BIGINT) + 62162035200
                                          ) AS DOUBLE) / (
                                            86400
                                          )) AS BIGINT)
                                        ) BETWEEN 306 AND 3652364
                                        THEN COALESCE(
                                          DATE_DIFF('DAY', FROM_ISO8601_DATE('1970-01-01'), "t1"."day") + 719468,
                                          CAST(FLOOR(CAST((
                                            CAST(NULL AS BIGINT) + 62162035200
                                          ) AS DOUBLE) / (
                                            86400
                                          )) AS BIGINT)
                                        )
                                        ELSE CAST(NULL AS BIGINT)
                                      END * 4
                                    ) + 3
                                  ) % 146097
                                ) AS DOUBLE) / (
                                  4
                                )
                              ) AS BIGINT) * 4
                            ) + 3
                          ) % 1461
                        ) AS DOUBLE) / (
                          4
                        )
                      ) AS BIGINT) * 2141
                    ) + 197913
                  ) AS DOUBLE) / (
                    65536
                  )
                ) AS BIGINT) - 1
              ) % 12
            ) + 1
          ) >= 12
      ) AS "t3"
    ) AS "t4"
  ) AS "t5"
  GROUP BY
    1
) AS "t7"
  ON TO_UTF8("t2"."item") = "t7"."item"
