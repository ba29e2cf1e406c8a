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
      TO_BINARY("t4"."customer", 'UTF-8') AS "who",
      TO_BINARY("t4"."lower(concat(product, '-', substring(country, 1, 2)))", 'UTF-8') AS "item"
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
                    OCTET_LENGTH("t3"."product") <= 65536
                  )
                  AND NOT (
                    CONTAINS(TO_BINARY("t3"."product", 'UTF-8'), TO_BINARY('00', 'HEX'))
                  )
                  THEN "t3"."product"
                  ELSE CAST(NULL AS VARCHAR)
                END,
                ''
              ),
              '-'
            ),
            COALESCE(
              SUBSTRING(
                CASE
                  WHEN (
                    OCTET_LENGTH("t3"."country") <= 65536
                  )
                  AND NOT (
                    CONTAINS(TO_BINARY("t3"."country", 'UTF-8'), TO_BINARY('00', 'HEX'))
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
                  (
                    (
                      CAST(FLOOR(
                        (
                          (
                            (
                              CAST(FLOOR(
                                (
                                  (
                                    (
                                      CASE
                                        WHEN COALESCE(
                                          DATEDIFF(DAY, DATE_FROM_PARTS(1970, 1, 1), "t1"."day") + 719468,
                                          CAST(FLOOR((
                                            CAST(NULL AS BIGINT) + 62162035200
                                          ) / (
                                            86400
                                          )) AS BIGINT)
                                        ) BETWEEN 306 AND 3652364
                                        THEN COALESCE(
                                          DATEDIFF(DAY, DATE_FROM_PARTS(1970, 1, 1), "t1"."day") + 719468,
                                          CAST(FLOOR((
                                            CAST(NULL AS BIGINT) + 62162035200
                                          ) / (
                                            86400
                                          )) AS BIGINT)
                                        )
                                        ELSE CAST(NULL AS BIGINT)
                                      END * 4
                                    ) + 3
                                  ) % 146097
                                ) / (
                                  4
                                )
                              ) AS BIGINT) * 4
                            ) + 3
                          ) % 1461
                        ) / (
                          4
                        )
                      ) AS BIGINT) * 2141
                    ) + 197913
                  ) / (
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
  ON TO_BINARY("t2"."item", 'UTF-8') = "t7"."item"
